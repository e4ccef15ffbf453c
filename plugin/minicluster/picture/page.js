// The page of a MiniCluster: fills the plots and tables by what it is told, over a WebSocket or in the page itself.
// Every text of a job, a node or a log is data: it is set as text, and never as HTML.
"use strict";
(() => {
  const config = JSON.parse(document.getElementById("config").textContent);
  const by = (id) => document.getElementById(id);
  const jobs = new Map(), uses = new Map();
  let samples = [], told = {nodes: [], marks: [], sizes: [], rows: [], now: 0}, skew = 0, heard = false;
  let sort = {key: "submit", down: true}, chosen = "", plots = null, setting = false, due = false, last = 0;
  const ROW = 27, PAUSE = 500, HATCHED = 200, ACTIVE = ["PENDING", "RUNNING"];

  const isLive = () => config.live && !told.isOver;
  const now = () => isLive() ? Date.now() / 1000 + skew : told.now;
  const make = (tag, text, kind) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const day = (t) => t ? new Date(t * 1000).toISOString().slice(5, 19).replace("T", " ") : "";
  const length = (s) => s < 60 ? `${s.toFixed(s < 10 ? 1 : 0)}s` : s < 3600 ? `${Math.floor(s / 60)}m${Math.floor(s % 60)}s`
    : `${Math.floor(s / 3600)}h${Math.floor(s % 3600 / 60)}m`;
  const seconds = (job) => job.run ? Math.max(0, (job.end || now()) - job.run) : null;
  // how far a job says that it is, and how long it takes if it goes on so
  const far = (job) => job.progress === null || job.end || !job.run ? "" : ` (${Math.round(100 * job.progress)} %`
    + (job.progress ? `, ~${length(seconds(job) * (1 - job.progress) / job.progress)} left)` : ")");
  const ranks = (text) => text.split(",").filter(Boolean).flatMap((part) => {
    const [first, end] = part.split("-").map(Number);
    return Array.from({length: (end === undefined ? first : end) - first + 1}, (_, n) => first + n);
  });
  // a job of an instance that is a job: only that instance knows it
  const isInside = (job) => job.id.includes("/");
  const attributes = (job) => Object.entries(job.user).map(([key, value]) =>
    `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`).join(" ");

  // what is told ------------------------------------------------------------------------------------------------

  function apply(data) {
    if (data.all) { jobs.clear(); uses.clear(); }
    for (const [name, {keep, points}] of Object.entries(data.use || {})) {
      if (points.length) uses.set(name, [...(uses.get(name) || []).slice(0, keep), ...points]);
      else uses.delete(name);
    }
    if (data.all || data.newSamples) samples = [];
    for (const job of data.jobs) jobs.set(job.number, job);
    for (const number of data.gone || []) jobs.delete(number);
    samples.push(...data.samples);
    if (samples.length > config.samples * 2) samples = samples.filter((_, n) => n % 2 || n > config.samples);
    told = data;
    skew = data.now - Date.now() / 1000;
    ask();
  }

  function ask() {
    if (due) return;
    due = true;
    setTimeout(() => { due = false; last = Date.now(); draw(); }, Math.max(0, last + PAUSE - Date.now()));
  }

  function draw() {
    drawStatus();
    drawChanges();
    drawTable();
    if (plots) drawPlots();
  }

  function drawStatus() {
    by("state").textContent = told.state;
    by("state").className = "tone " + ((told.rows.find((row) => row[0] === "State") || [])[2] || "");
    by("as-of").textContent = `${isLive() ? "live," : "as of"} ${day(told.now)} UTC`;
    say(told.trouble);
    by("status").replaceChildren(...told.rows.map(([label, text, tone]) => {
      const row = make("tr");
      row.append(make("td", label), make("td", text, tone));
      return row;
    }));
    by("marks").replaceChildren(...told.marks.slice(-100).reverse().map((mark) => {
      const item = make("li");
      item.append(make("time", day(mark.t)), document.createTextNode(mark.text));
      return item;
    }));
  }

  function say(trouble) {
    by("trouble").hidden = !trouble;
    by("trouble").textContent = trouble;
  }

  // changes, when the page was started so ------------------------------------------------------------------------

  // asks first; what becomes of it is told as any other change
  async function change(question, asked) {
    if (!confirm(question)) return;
    const body = {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(asked)};
    const said = await fetch("change", body).then((answer) => answer.json()).catch(() => ({error: "no answer"}));
    by("said").hidden = false;
    by("said").className = said.error ? "wrong" : "";
    by("said").textContent = said.error ? `It was not done: ${said.error}` : `Done: ${said.done}`;
  }

  const chosenNode = () => told.nodes.find((node) => String(node.rank) === by("node").value);

  function drawChanges() {
    const job = jobs.get(chosen), canChange = config.writable && isLive(), select = by("node"), kept = select.value;
    by("change").hidden = !canChange || !told.nodes.length;
    by("cancel").hidden = !canChange || !job || isInside(job) || !ACTIVE.includes(job.status);
    const options = told.nodes.map((node) => [String(node.rank), `${node.name}, ${node.state}`]);
    if (options.join() !== [...select.options].map((option) => [option.value, option.text]).join()) {
      select.replaceChildren(...options.map(([rank, text]) => new Option(text, rank)));
      if (options.some(([rank]) => rank === kept)) select.value = kept;
    }
    const isDrained = (chosenNode() || {}).state === "drained";
    by("drain").textContent = isDrained ? "undrain" : "drain";
    by("reason").hidden = isDrained;
  }

  function drainNode() {
    const node = chosenNode();
    if (!node) return;
    if (node.state === "drained") change(`Undrain ${node.name}, so that it takes jobs again?`, {change: "undrain", of: String(node.rank)});
    else change(`Drain ${node.name}, so that it takes no more jobs? Those on it run to their end.`,
      {change: "drain", of: String(node.rank), reason: by("reason").value});
  }

  function cancelJob() {
    const job = jobs.get(chosen);
    if (job) change(`Cancel job ${job.id} (${job.name.slice(0, 100)})? It can't be taken back.`, {change: "cancel", of: job.id});
  }

  // plots -------------------------------------------------------------------------------------------------------

  function fill(name, columns, rows) {
    const data = {};
    columns.forEach((column, n) => { data[column] = rows.map((row) => row[n]); });
    plots.source(name).data = data;
  }

  function colours() {
    if (by("colour").value === "status") return (job) => config.colours[job.status] || "#999999";
    const count = new Map();
    for (const job of jobs.values()) count.set(job.name, (count.get(job.name) || 0) + 1);
    const palette = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442"];
    const names = [...count].sort((a, b) => b[1] - a[1]).slice(0, palette.length).map(([name]) => name);
    by("colour").names = names.map((name, n) => [name, palette[n]]);
    return (job) => palette[names.indexOf(job.name)] || "#999999";
  }

  function bars(place, colour) {
    const found = [], end = now();
    for (const job of jobs.values()) {
      if (!job.run || !job.ranks) continue;
      let open = null;
      const all = ranks(job.ranks);
      all.forEach((rank, n) => {
        const node = place.get(rank);
        if (!node) return;
        // a job that has all cores of a node has all lanes
        const lanes = node.cores && job.cores >= node.cores * all.length ? 1 : node.lanes;
        const height = 0.84 / lanes, top = node.y - 0.42 + (lanes === 1 ? 0 : job.lanes[n] || 0) * height;
        // a job on neighbours has one bar
        if (open && lanes === 1 && open.y === node.y - 1 && open.lanes === 1) {
          open.row[2] = top + height;
          open.y = node.y;
          return;
        }
        const row = [job.run * 1000, Math.max(job.end || end, job.run + 0.02) * 1000, top + height, top, colour(job),
          job.id, job.name.slice(0, 200), job.status, job.cores,
          job.code === null ? "-" : job.code, job.nodes.slice(0, 200), attributes(job).slice(0, 300)];
        found.push(row);
        open = {row, y: node.y, lanes};
      });
    }
    return found;
  }

  function drawPlots() {
    const nodes = told.nodes, colour = colours();
    const place = new Map(nodes.map((node, y) => [node.rank, {y, lanes: node.lanes, cores: node.cores}]));
    const rows = bars(place, colour);
    fill("bars", config.bars, rows);
    const wrong = rows.filter((row) => config.hatches[row[7]]).slice(-HATCHED);
    fill("hatches", ["left", "right", "bottom", "top", "hatch"], wrong.map((row) => [...row.slice(0, 4), config.hatches[row[7]]]));
    const markers = {size: "triangle", lead: "star", drain: "inverted_triangle", undrain: "circle"};
    // marks of the whole cluster have a row above the nodes
    const bottom = Math.max(1, nodes.length) - 0.5, above = -0.5 - nodes.length * 0.025 - 0.1;
    const marks = told.marks.flatMap((mark) => (mark.ranks.length ? mark.ranks : [null]).map((rank) => [mark.t * 1000,
      rank === null ? above : (place.get(rank) || {y: above}).y, config.marks[mark.kind], markers[mark.kind], mark.kind,
      mark.text.slice(0, 300)]));
    fill("marks", ["x", "y", "color", "marker", "kind", "text"], marks);
    fill("lines", ["x", "y", "color"], marks.filter((row) => ["size", "lead"].includes(row[4]))
      .map((row) => [row[0], bottom, row[2]]));
    const end = now(), lastSample = samples.at(-1), lastSize = told.sizes.at(-1);
    const curve = lastSample ? [...samples, [Math.max(end, lastSample[0]), ...lastSample.slice(1)]] : [];
    fill("samples", ["t", "waiting", "running", "cores", "up"], curve.map((row) => [row[0] * 1000, ...row.slice(1)]));
    const sizes = lastSize ? [...told.sizes, [Math.max(end, lastSize[0]), lastSize[1]]] : [];
    fill("sizes", ["t", "size"], sizes.map(([t, size]) => [t * 1000, size]));
    ranges(nodes, curve, sizes, bottom, above);
    drawUse();
    document.body.dataset.bars = rows.length;
    document.body.dataset.marks = marks.length;
    drawLegend();
  }

  // what the nodes, one of them, or the chosen job use: the nodes of jobs that ran while somebody looked
  function drawUse() {
    const job = chosen && uses.has(`job ${chosen}`) ? [[`job ${chosen}`, `job ${jobs.get(chosen).id}`]] : [];
    const nodes = told.nodes.map((node) => [`node ${node.rank}`, node.name]).filter(([name]) => uses.has(name));
    const options = [["all", "all nodes"], ...job, ...nodes], select = by("use"), kept = select.value;
    if (options.join() !== [...select.options].map((option) => [option.value, option.text]).join()) {
      select.replaceChildren(...options.map(([name, text]) => new Option(text, name)));
      select.value = options.some(([name]) => name === kept) ? kept : "all";
    }
    const points = uses.get(select.value) || [];
    by("of").hidden = uses.size === 0;
    fill("cores used", ["t", "cores", "reserved"], points.map((point) => [point[0] * 1000, point[1], point[3]]));
    fill("memory used", ["t", "memory", "limit"], points.map((point) => [point[0] * 1000, point[2] / 1024, point[4] / 1024 || NaN]));
    const most = [points.flatMap((point) => [point[1], point[3]]), points.flatMap((point) => [point[2] / 1024, point[4] / 1024])];
    plots.uses.forEach((plot, n) => {
      if (plot.visible !== uses.size > 0) plot.visible = uses.size > 0;
      plot.y_range.setv({start: 0, end: 1.1 * most[n].reduce((a, b) => Math.max(a, b), 0.01)});
    });
    document.body.dataset.uses = points.length;
  }

  // a narrow page has as many times as don't overlap, the legend in columns, and no tools
  function fit() {
    const width = document.body.clientWidth, isNarrow = width < 700;
    const ticks = Math.min(12, Math.max(2, Math.floor((width - (isNarrow ? 180 : 260)) / 100)));
    for (const plot of plots.all) {
      const ticker = plot.below[0].ticker;
      if (ticker.desired_num_ticks !== ticks) ticker.desired_num_ticks = ticks;
      if (!plots.uses.includes(plot) && (plot.toolbar_location === null) !== isNarrow) plot.toolbar_location = isNarrow ? null : "right";
    }
    for (const plot of plots.all) {
      const legend = plot.above.find((part) => "ncols" in part), columns = isNarrow ? 2 : "auto";
      if (legend && legend.ncols !== columns) legend.ncols = columns;
    }
  }

  function ranges(nodes, curve, sizes, bottom, top) {
    fit();
    const most = (values, least) => values.reduce((a, b) => Math.max(a, b), least) * 1.1;
    const {nodes: above, queue: below} = plots;
    above.y_range.setv({start: bottom, end: 2 * top + 0.5});
    above.left[0].ticker.desired_num_ticks = Math.min(40, nodes.length + 1);
    const names = nodes.map((node) => node.name.length > 40 ? node.name.slice(0, 39) + "…" : node.name);
    const left = 24 + 7 * names.reduce((a, b) => Math.max(a, b.length), 10);
    const blank = Array.from({length: Math.ceil(-2 * top)}, (_, n) => [-1 - n, " "]);
    above.left[0].major_label_overrides = new Map([...names.map((name, y) => [y, name]), ...blank]);
    for (const plot of plots.all) if (plot.min_border_left !== left) plot.min_border_left = left;
    const height = Math.min(900, Math.max(config.height, 80 + 24 * nodes.length));
    if (above.height !== height) above.height = height;
    below.y_range.setv({start: 0, end: most(curve.flatMap((row) => [row[1], row[2], row[3]]), 1)});
    below.extra_y_ranges.nodes.setv({start: 0, end: most([...curve.map((row) => row[4]), ...sizes.map((row) => row[1])], 1)});
    const span = Number(by("span").value);
    if (span < 0) return;
    const starts = [samples.length ? samples[0][0] : Infinity, told.marks.length ? told.marks[0].t : Infinity];
    const end = now(), begin = Math.min(...starts, end - 10), first = span ? Math.max(begin, end - span) : begin;
    const room = (end - first) * 0.02;
    setting = true;
    above.x_range.setv({start: (first - room) * 1000, end: (end + room) * 1000});
    setting = false;
  }

  function drawLegend() {
    const pairs = by("colour").value === "name" ? by("colour").names
      : Object.entries(config.colours).filter(([status]) => [...jobs.values()].some((job) => job.status === status));
    by("legend").replaceChildren(...pairs.map(([text, colour]) => {
      const item = make("span"), mark = make("i");
      mark.style.background = colour;
      item.append(mark, document.createTextNode(text.length > 40 ? text.slice(0, 39) + "…" : text || "-"));
      return item;
    }));
  }

  function dress() {
    const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue(name).trim();
    for (const plot of plots.all) {
      plot.setv({background_fill_color: of("--ground"), border_fill_color: of("--ground"), outline_line_color: of("--line")});
      for (const part of [...plot.left, ...plot.right, ...plot.below, ...plot.above, ...plot.center]) {
        if ("major_label_text_color" in part) part.setv({major_label_text_color: of("--text"), axis_label_text_color: of("--text"),
          axis_line_color: of("--dim"), major_tick_line_color: of("--dim"), minor_tick_line_color: null});
        if ("grid_line_color" in part) part.grid_line_color = of("--line");
        if ("label_text_color" in part) part.setv({label_text_color: of("--text"), background_fill_color: of("--ground"),
          border_line_color: null});
      }
    }
  }

  // the table ---------------------------------------------------------------------------------------------------

  const COLUMNS = [
    ["id", "ID", (job) => job.id], ["name", "NAME", (job) => job.name], ["status", "STATE", (job) => job.status],
    ["code", "EXIT CODE", (job) => job.code === null ? "" : String(job.code)], ["nodes", "NODES", (job) => job.nodes],
    ["cores", "CORES", (job) => job.cores ? String(job.cores) : ""], ["submit", "SUBMITTED (UTC)", (job) => day(job.submit)],
    ["run", "START (UTC)", (job) => day(job.run)],
    ["length", "DURATION", (job) => seconds(job) === null ? "" : length(seconds(job)) + far(job)], ["user", "ATTRIBUTES", attributes],
  ];
  const TONES = {PENDING: "waits", FAILED: "wrong", TIMEOUT: "wrong", CANCELED: "wrong", LOST: "wrong"};

  function wanted() {
    const text = by("search").value.toLowerCase(), only = by("only").value;
    const found = [...jobs.values()].filter((job) => (!only || job.status === only) && (!text ||
      [job.id, job.name, job.nodes, job.command, attributes(job)].some((part) => part.toLowerCase().includes(text))));
    const value = (job) => sort.key === "length" ? seconds(job) ?? -1 : sort.key === "user" ? attributes(job) : job[sort.key];
    const sign = sort.down ? -1 : 1;
    return found.sort((a, b) => {
      const [x, y] = [value(a) ?? "", value(b) ?? ""];
      return x < y ? -sign : x > y ? sign : 0;
    });
  }

  function drawTable() {
    const found = wanted(), list = by("list"), statuses = [...new Set([...jobs.values()].map((job) => job.status))].sort();
    const options = [...by("only").options].map((option) => option.value).slice(1);
    if (statuses.join() !== options.join()) {
      const kept = by("only").value;
      by("only").replaceChildren(new Option("all", ""), ...statuses.map((status) => new Option(status, status)));
      by("only").value = statuses.includes(kept) ? kept : "";
    }
    by("count").textContent = found.length === jobs.size ? `${jobs.size} jobs` : `${found.length} of ${jobs.size} jobs`;
    by("none").hidden = jobs.size > 0;
    list.hidden = jobs.size === 0;
    document.body.dataset.rows = found.length;
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 10), shown = found.slice(first, first + 60);
    const below = Math.max(0, found.length - first - shown.length), body = by("rows");
    const all = [pad("above", first), ...shown.map(row), pad("below", below)];
    // what stays is not touched: its text may be selected
    all.forEach((one, n) => { if (body.children[n] !== one) body.insertBefore(one, body.children[n] || null); });
    while (body.children.length > all.length) body.lastChild.remove();
    for (const [number, one] of rows) if (!one.isConnected) rows.delete(number);
  }

  // the rows that are shown, by the numbers of their jobs, and what is above and below them
  const rows = new Map();

  function pad(which, count) {
    const made = rows.get(which) || make("tr", undefined, "pad");
    if (!made.firstChild) {
      made.append(make("td"));
      made.firstChild.colSpan = COLUMNS.length;
      rows.set(which, made);
    }
    made.firstChild.style.height = `${count * ROW}px`;
    return made;
  }

  function row(job) {
    const made = rows.get(job.number) || make("tr");
    if (!made.firstChild) {
      made.tabIndex = 0;
      made.dataset.id = job.id;
      made.append(...COLUMNS.map(() => make("td")));
      made.onclick = () => { if (getSelection().isCollapsed) open(job.number); };
      made.onkeydown = (event) => { if (event.key === "Enter") open(job.number); };
      rows.set(job.number, made);
    }
    made.className = job.number === chosen ? "job chosen" : "job";
    COLUMNS.forEach(([key, , text], n) => {
      const cell = made.children[n], said = text(job).slice(0, 200);
      if (cell.textContent !== said) cell.textContent = said;
      if (key === "status") cell.className = TONES[job.status] || "";
    });
    return made;
  }

  function heads() {
    by("heads").replaceChildren(...COLUMNS.map(([key, title]) => {
      const head = make("th", title + (sort.key === key ? (sort.down ? " ▼" : " ▲") : ""));
      head.onclick = () => {
        sort = {key, down: sort.key === key ? !sort.down : false};
        heads();
        drawTable();
      };
      return head;
    }));
  }

  // one job -----------------------------------------------------------------------------------------------------

  async function open(number) {
    const job = jobs.get(number);
    if (!job) return;
    chosen = number;
    by("detail").hidden = false;
    if (!matchMedia("(min-width: 901px)").matches) by("detail").scrollIntoView();
    by("which").textContent = `${job.id} ${job.name}`;
    const record = {state: job.status, "exit code": job.code, exception: job.exception, nodes: job.nodes, cores: job.cores,
      tasks: job.tasks, submitted: day(job.submit), start: day(job.run), end: day(job.end), used: job.used, "jobs inside": job.inner,
      attributes: attributes(job), command: job.command};
    by("record").replaceChildren(...Object.entries(record).filter(([, value]) => value !== null && value !== "").map(([key, value]) => {
      const line = make("tr");
      line.append(make("td", key), make("td", String(value)));
      return line;
    }));
    lines(job);
    by("use").append(new Option("", `job ${number}`));
    by("use").value = `job ${number}`;
    draw();
    by("answer").replaceChildren();
    if (!config.live || isInside(job)) return;
    by("answer").append(make("p", "asking the lead …"));
    const said = await fetch(`job?id=${encodeURIComponent(job.id)}`).then((answer) => answer.json()).catch(() => ({error: "no answer"}));
    if (chosen !== number) return;
    const parts = [];
    if (said.error) parts.push(make("p", said.error, "wrong"));
    for (const text of said.why || []) parts.push(make("p", text));
    if (said.command) parts.push(make("h3", "Command"), make("pre", said.command));
    if (said.output !== undefined) parts.push(make("h3", "End of its output"), make("pre", said.output || "nothing"));
    by("answer").replaceChildren(...parts);
  }

  function lines(job) {
    const all = isInside(job) ? [] : [`minicluster why ${config.name}${config.where} ${job.id}`,
      `minicluster output ${config.name}${config.where} ${job.id}`];
    if (all.length && ACTIVE.includes(job.status)) all.push(`minicluster flux ${config.name}${config.where} -- cancel ${job.id}`);
    by("lines").replaceChildren(...all.map((text) => {
      const item = make("li"), copy = make("button", "copy");
      copy.type = "button";
      copy.onclick = () => navigator.clipboard.writeText(text).then(() => { copy.textContent = "copied"; }, () => {});
      item.append(make("code", text), copy);
      return item;
    }));
  }

  // the connection ----------------------------------------------------------------------------------------------

  function listen() {
    const address = new URL("live", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    const socket = new WebSocket(address);
    socket.onmessage = (event) => { heard = true; apply(JSON.parse(event.data)); };
    socket.onclose = () => {
      say(heard || ["127.0.0.1", "localhost"].includes(location.hostname)
        ? "`minicluster dashboard` does not answer: the page shows what it knew, and tries again"
        : `no connection: start the page with the name of the proxy, by \`minicluster dashboard --host ${location.host}\``);
      setTimeout(listen, 2000);
    };
  }

  async function begin() {
    heads();
    for (const id of ["controls", "filters", "change"]) by(id).onsubmit = (event) => event.preventDefault();
    for (const id of ["search", "only"]) by(id).oninput = drawTable;
    for (const id of ["colour", "span", "use"]) by(id).oninput = draw;
    by("node").oninput = drawChanges;
    by("drain").onclick = drainNode;
    by("cancel").onclick = cancelJob;
    by("list").onscroll = drawTable;
    by("close").onclick = () => { chosen = ""; by("detail").hidden = true; draw(); };
    document.onkeydown = (event) => { if (event.key === "Escape") by("close").onclick(); };
    const [view] = [await Bokeh.embed.embed_item(config.plots, "plots")].flat();
    const root = Bokeh.documents.at(-1);
    const all = ["nodes", "use of cores", "use of memory", "queue"].map((name) => root.get_model_by_name(name));
    plots = {nodes: all[0], uses: all.slice(1, 3), queue: all[3], all,
      source: (name) => root.get_model_by_name(name), view};
    plots.nodes.x_range.change.connect(() => { if (!setting) by("span").value = "-1"; });
    dress();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", dress);
    if (config.live) {
      listen();
      setInterval(() => { if ([...jobs.values()].some((job) => ACTIVE.includes(job.status))) ask(); }, 1000);
    } else {
      apply(config.data);
    }
  }

  begin();
})();
