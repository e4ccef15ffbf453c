-- Read by Flux's shell on each node of each job (FLUX_SHELL_RC_PATH, flux-shell-initrc(5)): what Flux can't know of a
-- pod. What the job's own options say wins.

local home = os.getenv("MINICLUSTER_HOME")
if not home then return end

local function exists(path)
    local file = io.open(path)
    if file then file:close() end
    return file ~= nil
end

-- Pods of a node all number their CPUs from 0: bound by those numbers, the tasks of all pods run on the same CPUs.
if shell.options["cpu-affinity"] == nil and exists(home .. "/config/run/unbound") then
    shell.options["cpu-affinity"] = "off"
end

-- The image's PYTHONPATH, without what flux puts before it for its own commands.
local modules = os.getenv("FLUX_PYTHONPATH_PREPEND")
local path = shell.getenv("PYTHONPATH")
if modules and path == modules then
    shell.unsetenv("PYTHONPATH")
elseif modules and path and path:sub(1, #modules + 1) == modules .. ":" then
    shell.setenv("PYTHONPATH", path:sub(#modules + 2))
end

-- A job that starts brokers (batch, alloc): flux does that again for them, and so for their initial program.
local command = shell.info.jobspec.tasks[1].command
if command[1] == "flux" and (command[2] == "broker" or command[2] == "start") then
    shell.setenv("MINICLUSTER_SHELL", shell.getenv("SHELL") or "/bin/sh")
    shell.setenv("SHELL", home .. "/minicluster/initial.sh")
end

-- -o pmi=pmix: flux-pmix has a prefix of its own in a Spack view, where Flux doesn't look for plugins.
local function find_pmix()
    for folder in plugin.searchpath:gmatch("[^:]+") do
        -- the default initrc has loaded it
        if exists(folder .. "/pmix.so") then return end
    end
    for _, name in ipairs({"pmix.so", "pmix/pmix.so"}) do
        local file = home .. "/view/lib/flux/shell/plugins/" .. name
        if exists(file) then
            if pcall(plugin.load, file) then return end
            -- only the loader knows why: Flux's own message has another's errno
            local _, problem = package.loadlib(file, "*")
            shell.die("minicluster: -o pmi=pmix can't be had, put libpmix into the image: " .. tostring(problem))
        end
    end
    shell.die("minicluster: -o pmi=pmix can't be had, this Flux has no flux-pmix: use a view that has it")
end

for method in tostring(shell.options.pmi or ""):gmatch("[^,]+") do
    if method == "pmix" then find_pmix() end
end
