-- Options of Flux's shell that suit a pod. The shell reads this file on each node of each job (FLUX_SHELL_RC_PATH,
-- flux-shell-initrc(5)). The job's own options have priority.

local home = os.getenv("MINICLUSTER_HOME")
if not home then return end

local function exists(path)
    local file = io.open(path)
    if file then file:close() end
    return file ~= nil
end

local function read(path)
    local file = io.open(path)
    local text = file and file:read("*a") or ""
    if file then file:close() end
    return text
end

-- Adds a line to the notes of this node's jobs (job_notes.py). A full file gives way to a new one.
local function note(line)
    local path = home .. "/config/run/jobs"
    local file = io.open(path, "a")
    if not file then return end
    if file:seek("end") > 65536 then os.rename(path, path .. ".old") end
    file:write(line, "\n")
    file:close()
end

local function uptime() return read("/proc/uptime"):match("^%S+") end

-- By its mark the job of a process is known, also of one that has left its parents (node_jobs.py). A job in a job is a
-- part of the outer one, whose mark it has.
if (os.getenv("FLUX_URI") or ""):find("local://" .. home .. "/config/run/flux/", 1, true) == 1 then
    local job = read("/proc/self/cmdline"):match("(%d+)%c*$")
    local run = job .. " " .. read("/proc/self/stat"):match("^%d+") .. " " .. uptime()
    shell.setenv("MINICLUSTER_JOB", job)
    note(run)
    plugin.register {
        name = "minicluster-notes",
        handlers = {{ topic = "shell.exit", fn = function () note(run .. " " .. uptime()) end }}
    }
end

-- Local code (--upload) came to the nodes that were up then. On one that joined later, the lead is asked for it
-- (late_upload.sh). Flux's shell has looked for the job's folder before it reads this file.
local uploads, system = home .. "/uploads/", shell.info.jobspec.attributes.system or {}

local function bring(place)
    local flux = require("flux").new()
    -- broker_rank of the shell is the shell's own before Flux 0.60
    local answer, problem = flux:rpc("minicluster.upload", { place = place, rank = flux.rank })
    if not answer or answer.problem then return answer and answer.problem or problem end
    local wait = "n=0; until [ -e '%s.here' ]; do [ $n -lt %d ] && [ ! -e '%s.failed' ] && sleep 0.1 || exit 1; n=$((n+1)); done"
    local done = os.execute(wait:format(uploads .. place, 6000, uploads .. place))
    if done ~= true and done ~= 0 then return "the lead could not bring it" end
end

local folders = (system.cwd or "") .. ":" .. ((system.environment or {}).PYTHONPATH or "")
for path in folders:gmatch("[^:]+") do
    local place = path:sub(1, #uploads) == uploads and path:sub(#uploads + 1):match("^[%w-]+")
    if place and not exists(uploads .. place .. ".here") then
        local is_there = exists(uploads .. place)
        local problem = not is_there and bring(place)
        if not is_there and not problem and path == system.cwd then _, problem = require("posix").chdir(path) end
        if problem then
            shell.die("minicluster: " .. path .. " is not on this node, which joined later: " .. tostring(problem)
                .. ": upload it again")
        end
        if not is_there then shell.log("minicluster: the lead has brought " .. path .. " meanwhile") end
    end
end

-- All pods of a Kubernetes node number their CPUs from 0: if tasks were bound to these, all pods would share the
-- same CPUs.
if shell.options["cpu-affinity"] == nil and exists(home .. "/config/run/unbound") then
    shell.options["cpu-affinity"] = "off"
end

-- Returns the members of a list of ids, such as 4-5,7 or MIG-a,MIG-b.
local function members(list)
    local found = {}
    for one in list:gmatch("[^,]+") do
        local first, last = one:match("^(%d+)-(%d+)$")
        if first then
            for id = tonumber(first), tonumber(last) do found[#found + 1] = string.format("%d", id) end
        else
            found[#found + 1] = one
        end
    end
    return found
end

-- With flux.locations, frobnicator.py chose the nodes of a job by where they were when it was submitted. A node that has
-- moved since then must not run the job. The shell has the constraints as they were submitted.
local locations = io.open(home .. "/config/run/locations")
if locations then
    local told, here = locations:read(), {}
    locations:close()
    for key, name in told:gmatch("(%a+)=(%S+)") do here[key] = name end

    -- Returns 1 if constraints (RFC 31) hold on this node, 0 if not, and 0.5 if that depends on more than locations.
    local function truth(constraints)
        local least, most = 1, 0
        for operator, values in pairs(constraints) do
            for _, value in ipairs(values) do
                local one = 0.5
                if type(value) == "table" then
                    one = truth(value)
                elseif operator == "properties" then
                    local negation, key, name = value:match("^(%^?)(%a+)=(.+)$")
                    if here[key] then one = (here[key] == name) == (negation == "") and 1 or 0 end
                end
                least, most = math.min(least, one), math.max(most, one)
            end
            if operator == "or" then return most end
            if operator == "not" then return 1 - least end
        end
        return least
    end

    if truth(shell.info.jobspec.attributes.system.constraints or {}) == 0 then
        shell.die("minicluster: since the job was submitted, this node has moved (" .. told .. "): submit the job again")
    end
end

-- Flux tells tasks their GPUs in CUDA_VISIBLE_DEVICES, by their places in the pod. Another kind's own variable takes its
-- place: ROCm reads both, and would choose by the second among those that it chose by the first. resources.sh notes the
-- variable, and the ids that the pod's GPUs have if these don't count from 0.
local gpus = io.open(home .. "/config/run/gpus")
if gpus and shell.options["gpu-affinity"] ~= "off" then
    local variable, own = gpus:read(), members(gpus:read())
    plugin.register {
        name = "minicluster-gpus",
        handlers = {{ topic = "task.init", fn = function ()
            local ids = members(task.getenv("CUDA_VISIBLE_DEVICES"))
            -- a job without GPUs has the id -1, which is nobody's
            for n, id in ipairs(ids) do ids[n] = own[tonumber(id) + 1] or id end
            task.unsetenv("CUDA_VISIBLE_DEVICES")
            task.setenv(variable, table.concat(ids, ","))
        end }}
    }
end
if gpus then gpus:close() end

-- What mpirun tells its tasks, by which programs choose their GPU or their part of the data. A job asks for it by
-- -o mpi=NAME, as those of a converted MPIJob do: others would take themselves for children of mpirun. OMPI_UNIVERSE_SIZE
-- is not here: with it, mpirun of Open MPI 4 refuses to start.
local mpi = {
    openmpi = {
        OMPI_COMM_WORLD_RANK = "rank", OMPI_COMM_WORLD_SIZE = "size", OMPI_COMM_WORLD_NODE_RANK = "local_rank",
        OMPI_COMM_WORLD_LOCAL_RANK = "local_rank", OMPI_COMM_WORLD_LOCAL_SIZE = "local_size",
    },
    -- PMI_RANK and PMI_SIZE come from Flux
    mpich = {
        MPI_LOCALRANKID = "local_rank", MPI_LOCALNRANKS = "local_size",
        MV2_COMM_WORLD_RANK = "rank", MV2_COMM_WORLD_SIZE = "size",
        MV2_COMM_WORLD_LOCAL_RANK = "local_rank", MV2_COMM_WORLD_LOCAL_SIZE = "local_size",
    },
}
mpi.intel = mpi.mpich
local told = mpi[tostring(shell.options.mpi):match("^[^@]*")]
if told then
    local known = { size = shell.info.ntasks, local_size = shell.rankinfo.ntasks }
    plugin.register {
        name = "minicluster-mpi",
        handlers = {{ topic = "task.init", fn = function ()
            known.rank, known.local_rank = task.info.rank, task.info.localid
            for name, key in pairs(told) do task.setenv(name, string.format("%d", known[key])) end
        end}}
    }
end

-- Tasks get the image's PYTHONPATH, without the modules that flux puts before it for its own commands.
local modules = os.getenv("FLUX_PYTHONPATH_PREPEND")
local path = shell.getenv("PYTHONPATH")
if modules and path == modules then
    shell.unsetenv("PYTHONPATH")
elseif modules and path and path:sub(1, #modules + 1) == modules .. ":" then
    shell.setenv("PYTHONPATH", path:sub(#modules + 2))
end

-- An older flux also adds its own bindings, after these modules.
local first = (shell.getenv("PYTHONPATH") or ""):match("^[^:]*/lib/flux/python3%.%d+")
local own = ":" .. (os.getenv("MINICLUSTER_PYTHONPATH") or "") .. ":"
if first and not own:find(":" .. first .. ":", 1, true) then
    path = shell.getenv("PYTHONPATH"):sub(#first + 2)
    if path == "" then shell.unsetenv("PYTHONPATH") else shell.setenv("PYTHONPATH", path) end
end

-- Tasks don't get the bindings of Flux either, which job.sh appends for a launcher.
local bindings = shell.getenv("MINICLUSTER_BINDINGS")
path = shell.getenv("PYTHONPATH")
if bindings and path == bindings then
    shell.unsetenv("PYTHONPATH")
elseif bindings and path and path:sub(-#bindings - 1) == ":" .. bindings then
    shell.setenv("PYTHONPATH", path:sub(1, -#bindings - 2))
end
shell.unsetenv("MINICLUSTER_BINDINGS")

-- Tasks get back what flux.sh kept from Flux's Python (world.sh), and their flux is again that of flux.sh.
local path_with_ours
for name, value in pairs(shell.getenv()) do
    local own = name:match("^MINICLUSTER_(PYTHON.+)$")
    if own and own ~= "PYTHONPATH" then
        if not shell.getenv(own) then shell.setenv(own, value) end
        shell.unsetenv(name)
        path_with_ours = home .. "/bin:" .. (shell.getenv("PATH") or "")
    end
end
if path_with_ours then shell.setenv("PATH", path_with_ours) end

-- Instances that the job starts (batch, alloc, flux start) do the same for their programs: flux-broker of this folder
-- starts their brokers.
local folder = home .. "/minicluster"
local commands = shell.getenv("FLUX_EXEC_PATH_PREPEND")
if not commands or commands == "" then
    shell.setenv("FLUX_EXEC_PATH_PREPEND", folder)
elseif commands:sub(1, #folder) ~= folder then
    shell.setenv("FLUX_EXEC_PATH_PREPEND", folder .. ":" .. commands)
end

-- For -o pmi=pmix: in a Spack view flux-pmix has a prefix of its own, where Flux doesn't look for plugins. An older
-- flux-pmix has its plugin in a folder pmix/.
local function find_pmix()
    for folder in plugin.searchpath:gmatch("[^:]+") do
        -- the default initrc has loaded the plugin
        if exists(folder .. "/pmix.so") then return end
    end
    for _, name in ipairs({"pmix.so", "pmix/pmix.so"}) do
        local file = home .. "/view/lib/flux/shell/plugins/" .. name
        if exists(file) then
            if pcall(plugin.load, file) then return end
            -- only the loader knows the reason: the errno in Flux's own message is unrelated
            local _, problem = package.loadlib(file, "*")
            shell.die("minicluster: -o pmi=pmix does not work, put libpmix into the image: " .. tostring(problem))
        end
    end
    shell.die("minicluster: -o pmi=pmix does not work, this Flux has no flux-pmix: use a view that has it")
end

for method in tostring(shell.options.pmi or ""):gmatch("[^,]+") do
    if method == "pmix" then find_pmix() end
end

-- Open MPI 5 has no PMI-1: without PMIx each of its tasks is a world of one rank, and the job ends with 0. Whether a
-- program is of it can't be seen, so any pmi= that a job names is taken for its answer. Open MPI 4 has another libopen-pal.
local function find_open_mpi_5(program)
    local path = (program:match("^(.*)/[^/]*$") or "") .. ":" .. (shell.getenv("PATH") or "")
    local folders = (shell.getenv("LD_LIBRARY_PATH") or "") .. ":/usr/local/lib:/opt/openmpi/lib"
    for folder in path:gmatch("[^:]+") do folders = folders .. ":" .. folder .. "/../lib:" .. folder .. "/../lib64" end
    for folder in folders:gmatch("[^:]+") do
        for _, part in ipairs({"", "/x86_64-linux-gnu", "/aarch64-linux-gnu", "/openmpi/lib"}) do
            local file = folder .. part .. "/libopen-pal.so.80"
            if exists(file) then return file end
        end
    end
end

local program = shell.info.jobspec.tasks[1].command[1]
if shell.info.rank == 0 and shell.info.ntasks > 1 and not shell.options.pmi and program:match("[^/]*$") ~= "flux" then
    local file = find_open_mpi_5(program)
    if file then
        shell.log("minicluster: warning: the image has Open MPI 5 (" .. file .. "), whose tasks are each rank 0 of 1 "
            .. "without -o pmi=pmix; for another program give -o pmi=simple")
    end
end
