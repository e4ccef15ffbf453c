-- The variables SLURM_* that a job knows only when it has its nodes, for jobs that came by Slurm's commands
-- (slurm_jobspec.py). Flux's shell reads this file on each node of each job, as it does minicluster.lua.

local jobspec = shell.info.jobspec
local own = type(jobspec.attributes.user) == "table" and jobspec.attributes.user.slurm
if type(own) ~= "table" then return end

local function whole(number) return string.format("%.0f", math.floor(number)) end

-- Returns numbers as Slurm lists them: 4(x2),3
local function repeated(numbers)
    local parts, last, count = {}, nil, 0
    numbers[#numbers + 1] = false
    for _, number in ipairs(numbers) do
        if number ~= last then
            if last then parts[#parts + 1] = whole(last) .. (count > 1 and "(x" .. whole(count) .. ")" or "") end
            last, count = number, 0
        end
        count = count + 1
    end
    return table.concat(parts, ",")
end

-- Returns how many members an idset has, such as 0-3,6
local function count(idset)
    local found = 0
    for part in (idset or ""):gmatch("[^,]+") do
        local first, last = part:match("^(%d+)-(%d+)$")
        found = found + (first and last - first + 1 or 1)
    end
    return found
end

local execution = shell.info.R.execution
local listed = {}
for _, entry in ipairs(execution.R_lite) do
    for _ = 1, count(entry.rank) do listed[#listed + 1] = count(entry.children.core) end
end

-- Returns the cores that the job has on one of its nodes. Flux before 0.70 has no ncores, and before 0.60 what it says
-- of each node is that of this one.
local function cores(rank) return shell.get_rankinfo(rank).resources.ncores or listed[rank + 1] end

-- the shell's own number of the job would lose digits in Lua 5.1
local function number_of_job()
    return own.id or io.open("/proc/self/cmdline"):read("*a"):match("(%d+)%c*$")
end

-- Makes the folders of the files of output, as Slurm does; a name that only tasks know stays as it is
local function make_folders()
    local known = { ["{{id.dec}}"] = number_of_job(), ["{{node.name}}"] = shell.rankinfo.name }
    for _, stream in pairs(((jobspec.attributes.system.shell or {}).options or {}).output or {}) do
        local path = type(stream) == "table" and stream.path or ""
        local folder = path:gsub("{{[^}]*}}", known):match("^(.+)/[^/]+$")
        if folder and not folder:find("{{", 1, true) and not io.open(folder) then
            os.execute("mkdir -p -- '" .. folder:gsub("'", "'\\''") .. "'")
        end
    end
end

-- In Slurm the names of a job's nodes lead to them, and programs take the first one for their rendezvous. Pods know each
-- other by a longer name: glibc looks in the pods' own domain too.
local function find_nodes()
    if shell.getenv("LOCALDOMAIN") then return end
    local host = shell.rankinfo.name or io.open("/proc/sys/kernel/hostname"):read()
    local hosts, resolver = io.open("/etc/hosts"), io.open("/etc/resolv.conf")
    local domain = hosts and hosts:read("*a"):match("%s" .. host:gsub("%p", "%%%0") .. "%.(%S+)")
    local known = resolver and ("\n" .. resolver:read("*a")):match("\nsearch%s+([^\n]+)")
    if domain then shell.setenv("LOCALDOMAIN", domain .. " " .. (known or "")) end
end

local here = shell.rankinfo
local all_cores, all_tasks, left = {}, {}, own.tasks
for rank = 0, shell.info.size - 1 do
    all_cores[#all_cores + 1] = cores(rank)
    local tasks = shell.get_rankinfo(rank).ntasks
    if own.command ~= "srun" and own.command ~= "step" then
        -- its only task is the script, or a broker: those of the steps fill the nodes
        tasks = math.min(left, math.max(1, math.floor(cores(rank) / own.cpus)))
        if rank == shell.info.size - 1 and shell.info.size > 1 then tasks = math.max(left, 1) end
        left = left - tasks
    end
    all_tasks[#all_tasks + 1] = tasks
end
local hosts = table.concat(execution.nodelist, ",")
local gpus = count(here.resources.gpus)
make_folders()
find_nodes()

if own.command == "step" then
    shell.setenv("SLURM_STEP_NODELIST", hosts)
    shell.setenv("SLURM_STEP_NUM_NODES", whole(shell.info.size))
    shell.setenv("SLURM_STEP_TASKS_PER_NODE", repeated(all_tasks))
else
    local job = number_of_job()
    local nodes = whole(shell.info.size)
    local known = {
        SLURM_JOB_ID = job, SLURM_JOBID = job,
        SLURM_JOB_NODELIST = hosts, SLURM_NODELIST = hosts,
        SLURM_JOB_NUM_NODES = nodes, SLURM_NNODES = nodes,
        SLURM_TASKS_PER_NODE = repeated(all_tasks), SLURM_JOB_CPUS_PER_NODE = repeated(all_cores),
        SLURM_JOB_START_TIME = whole(execution.starttime),
    }
    if (jobspec.attributes.system.duration or 0) > 0 and execution.expiration then
        known.SLURM_JOB_END_TIME = whole(execution.expiration)
    end
    if own.restarts then known.SLURM_RESTART_COUNT = whole(own.restarts) end
    if own.index and not own.array then known.SLURM_ARRAY_JOB_ID = job end
    for name, text in pairs(known) do shell.setenv(name, text) end
end
shell.setenv("SLURM_CPUS_ON_NODE", whole(cores(shell.info.rank)))
shell.setenv("MINICLUSTER_SLURM_CORES", whole(cores(shell.info.rank)))
shell.setenv("SLURM_NODEID", whole(shell.info.rank))
shell.setenv("SLURMD_NODENAME", here.name or io.open("/proc/sys/kernel/hostname"):read())
if gpus > 0 then
    shell.setenv("SLURM_GPUS_ON_NODE", whole(gpus))
    shell.setenv("SLURM_JOB_GPUS", here.resources.gpus)
end
-- for a job that was submitted with --export=NONE from nowhere
if not shell.getenv("PATH") then shell.setenv("PATH", os.getenv("PATH") or "/usr/bin:/bin") end

-- The broker of an instance removes SLURM_*: for its script they also have names of ours (theirs.sh).
local is_instance = tonumber(shell.getenv("MINICLUSTER_SLURM_STEP")) ~= nil and own.command ~= "step"
if is_instance then
    local names = { "SLURM_PROCID", "SLURM_LOCALID" }
    for name, text in pairs(shell.getenv()) do
        if name:match("^SLURM") and text ~= "" then
            shell.setenv("MINICLUSTER_" .. name, text)
            names[#names + 1] = name
        end
    end
    shell.setenv("MINICLUSTER_SLURM_NAMES", table.concat(names, " "))
end

plugin.register {
    name = "minicluster-slurm",
    handlers = {{ topic = "task.init", fn = function ()
        for name, number in pairs({ SLURM_PROCID = task.info.rank, SLURM_LOCALID = task.info.localid }) do
            task.setenv(name, whole(number))
            if is_instance then task.setenv("MINICLUSTER_" .. name, whole(number)) end
        end
    end }}
}
