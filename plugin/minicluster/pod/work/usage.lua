-- What a job has used on this node: each shell tells Flux when it ends, as a memo of the job, of which job_record.py makes
-- a part of its record. What nobody here knows is left out. Flux's shell reads this file as it does minicluster.lua.

local home = os.getenv("MINICLUSTER_HOME")
-- a job in a job is a part of the outer one
if not home or (os.getenv("FLUX_URI") or ""):find("local://" .. home .. "/config/run/flux/", 1, true) ~= 1 then return end

local folder = home .. "/config/run/usage/"
-- What a second has of the units of proc_pid_stat(5): the same on all machines
local TICKS = 100

local function read(path)
    local file = io.open(path)
    local text = file and file:read("*a") or ""
    if file then file:close() end
    return text
end

-- Returns the members of an idset, such as 0-3,6
local function members(idset)
    local all = {}
    for part in (idset or ""):gmatch("[^,]+") do
        local first, last = part:match("^(%d+)-(%d+)$")
        for id = first or part, last or part do all[#all + 1] = string.format("%d", id) end
    end
    return all
end

local function number(text, pattern) return tonumber(text:match(pattern) or nil) end

-- Returns what the ended children of this shell have had of the CPUs, and theirs.
local function cpu_seconds(stat)
    local fields = {}
    for field in (stat:match(".*%) (.*)") or ""):gmatch("%S+") do fields[#fields + 1] = tonumber(field) or 0 end
    return fields[15] and (fields[14] + fields[15]) / TICKS
end

-- Returns bytes that they have read or written, to anything: the shell's own thread counts apart (proc_pid_io(5)).
local function bytes(key, all, own)
    local both, mine = number(all, key .. ": (%d+)"), number(own, key .. ": (%d+)")
    return both and mine and math.max(0, both - mine)
end

local function used(job)
    local stat, resources = read("/proc/self/stat"), shell.rankinfo.resources or {}
    local all, own = read("/proc/self/io"), read("/proc/self/task/" .. (stat:match("^%d+") or "") .. "/io")
    local looked, gpus = {}, #members(resources.gpus)
    for word in read(folder .. job):gmatch("%S+") do looked[#looked + 1] = tonumber(word) end
    os.remove(folder .. job)
    os.remove(folder .. job .. ".gpus")
    return {
        cores = resources.ncores or resources.cores and #members(resources.cores),
        gpus = gpus > 0 and gpus or nil,
        cpu_seconds = cpu_seconds(stat),
        memory_peak = looked[1],
        memory_limit = looked[2],
        threads = looked[3],
        gpu_memory_peak = looked[4],
        gpu_memory_limit = looked[5],
        gpus_busy = looked[6],
        read = bytes("rchar", all, own),
        written = bytes("wchar", all, own),
    }
end

local function tell()
    local job = string.format("%d", shell.info.jobid)
    -- a Lua before 5.3 can't hold each id
    assert(job == read("/proc/self/cmdline"):match("(%d+)%c*$"), "the job's id is too large")
    local flux = assert(require("flux").new())
    -- broker_rank of the shell is the shell's own before Flux 0.60
    local memo = { minicluster_usage = { ["rank" .. string.format("%d", flux.rank)] = used(job) } }
    assert(flux:rpc("job-manager.memo", { id = shell.info.jobid, memo = memo }))
end

-- Of GPUs whose ids are their own, of parts of one, or of another kind, job_gpus.py knows nothing.
local gpus, own = members((shell.rankinfo.resources or {}).gpus), io.open(home .. "/config/run/gpus")
if own then own:close() end
local file = #gpus > 0 and not own and io.open(string.format("%s%d.gpus", folder, shell.info.jobid), "w")
if file then
    file:write(table.concat(gpus, " "), "\n")
    file:close()
end

-- job_peaks.py looks at it soon
local begun = io.open(folder .. "begun", "r+")
if begun then
    begun:write("\n")
    begun:close()
end

plugin.register {
    name = "minicluster-usage",
    handlers = {{ topic = "shell.exit", fn = function ()
        -- what a job has used is no reason for it to fail
        local is_told, problem = pcall(tell)
        if not is_told then shell.debug("minicluster: its usage is not told: " .. tostring(problem)) end
    end }}
}
