// The page: asks the console once a second and draws what it says. Texts of the server are put in as text, never as HTML.
// Those of the tables below the chart and the tree are in panels.js.
"use strict";
const byId = (id) => document.getElementById(id);
const meta = (name) => document.querySelector(`meta[name="${name}"]`).content;
const CLASSES = ["CPU", "Lock", "LWLock", "IO", "Scheduler", "IPC", "Timeout"];
const SVG = "http://www.w3.org/2000/svg";
const SECONDS = 600, NODES = 500, ROWS = 200;
let history_ = [];      // seconds, oldest first
let shown = null;       // the second that is shown, in microseconds; null: now
let asked = null;       // the session that a confirmation is about
let processors = null;  // the server's: their number, or why it is not known

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
function drawn(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
const colour = (name) => `var(--${CLASSES.includes(name) ? name : "Other"})`;
const seconds = (s) => s === null || s === undefined ? "" : s < 1 ? `${Math.round(s * 1000)} ms` : s < 120 ? `${s.toFixed(1)} s` : `${Math.round(s / 60)} min`;
const clock = (us) => new Date(us / 1000).toLocaleTimeString();

// A request with the visitor's session; an answer of 401 asks for a login.
async function ask(path, method = "GET", body = undefined) {
  const headers = { "x-clearway-token": meta("token") };
  const session = sessionStorage.getItem("session");
  if (session) headers["x-clearway-session"] = session;
  const answer = await fetch(path, { method, headers, body, cache: "no-store" });
  const said = await answer.json();
  if (answer.status === 401) throw Object.assign(new Error(said.error), { login: true });
  if (!answer.ok) throw new Error(said.error || `${answer.status}`);
  return said;
}
const get = (path) => ask(path);

// What the line across the chart is, or why there is none.
function legendOfProcessors(top) {
  if (!processors) return [];
  const count = processors.count;
  if (!count) return [element("li", {}, `processors: not known (${processors.why}; clearway watch --processors N says it)`)];
  const named = `${count} processor${count === 1 ? "" : "s"}`;
  if (count > top) return [element("li", {}, `${named}: above the scale`)];
  const line = drawn("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" });
  line.append(drawn("line", { x1: 0, x2: 12, y1: 6, y2: 6, class: "processors" }));
  return [element("li", {}, line, named)];
}

// The chart: one bar a second; the right edge is now or the shown moment's surroundings.
function drawChart() {
  const end = shown && history_.length && shown < history_[history_.length - 1].at - SECONDS * 1e6 ? shown + SECONDS * 5e5 : history_.length ? history_[history_.length - 1].at : 0;
  const part = history_.filter((s) => s.at > end - SECONDS * 1e6 && s.at <= end);
  const total = (s) => Object.values(s.classes).reduce((a, b) => a + b, 0);
  const most = Math.max(4, ...part.map(total)), count = processors && processors.count;
  // Many processors and little work: a line far above the bars would make them too small to see.
  const top = count && count <= 3 * most ? Math.max(most, Math.ceil(count * 1.15)) : most;
  const svg = drawn("svg", { viewBox: `0 0 ${SECONDS} 100`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const names = new Set();
  for (const s of part) {
    const x = SECONDS - 1 - Math.round((end - s.at) / 1e6);
    let y = 100;
    for (const name of [...CLASSES, ...Object.keys(s.classes).filter((c) => !CLASSES.includes(c))]) {
      const n = s.classes[name];
      if (!n) continue;
      names.add(name);
      const height = 100 * n / top;
      y -= height;
      svg.append(drawn("rect", { x, y, width: 1.05, height, fill: colour(name) }));
    }
    if (shown && s.at === shown) svg.append(drawn("rect", { x: x - 0.5, y: 0, width: 2, height: 100, fill: "var(--text)", opacity: 0.5 }));
  }
  if (count && count <= top) svg.append(drawn("line", { x1: 0, x2: SECONDS, y1: 100 - 100 * count / top, y2: 100 - 100 * count / top, class: "processors" }));
  byId("chart").replaceChildren(svg);
  byId("legend").replaceChildren(...[...names].map((name) => {
    const box = drawn("svg", { viewBox: "0 0 1 1", "aria-hidden": "true" });
    box.append(drawn("rect", { width: 1, height: 1, fill: colour(name) }));
    return element("li", {}, box, name);
  }), ...legendOfProcessors(top), element("li", {}, `top of the scale: ${top} sessions`));
  byId("chart").secondAt = (share) => {
    const at = end - (1 - share) * SECONDS * 1e6;
    return part.reduce((best, s) => best === null || Math.abs(s.at - at) < Math.abs(best.at - at) ? s : best, null);
  };
}

// The tree of blockers. A session that several others block stands below the first of them.
function drawTree(second) {
  const sessions = second ? second.sessions : [];
  const byPid = new Map(sessions.map((s) => [s.pid, s]));
  const below = new Map();
  for (const s of sessions) {
    const parent = s.blocked_by.length ? s.blocked_by[0] : null;
    if (parent === null) continue;
    if (!below.has(parent)) below.set(parent, []);
    below.get(parent).push(s);
  }
  const seen = new Set();
  // All sessions below one, itself included; a chain may have thousands.
  const reach = (pid) => {
    const on = new Set([pid]), open = [pid];
    while (open.length) for (const s of below.get(open.pop()) || []) if (!on.has(s.pid)) { on.add(s.pid); open.push(s.pid); }
    return on;
  };
  let left = NODES;
  const node = (pid, isRoot) => {
    const s = byPid.get(pid);
    const item = element("li", { class: "node" });
    const line = element("span", {}, element("strong", {}, `${pid}`));
    if (s) line.append(` ${s.user} ${s.application ? `(${s.application}) ` : ""}${s.state}${s.event ? `, waits for ${s.class}: ${s.event}` : ""}, ${seconds(s.in_state_s)}`);
    else line.append(" not a client's session, or gone");
    item.append(line);
    const place = s && s.lock && s.lock.object ? `${s.lock.object}${s.lock.key ? ` ${s.lock.key}` : ""}` : "";
    if (place && s.blocked_by.length) item.append(element("span", { class: "sql" }, `wants ${s.lock.mode} on ${place}`));
    if (s && s.lock && s.lock.taken_by) {
      const ago = s.lock.taken_ago > 0 ? ` (${s.lock.taken_ago} statement${s.lock.taken_ago === 1 ? "" : "s"} ago)` : "";
      item.append(element("span", { class: "sql taken" }, `took what others wait for by: ${s.lock.taken_by}${ago}`));
    }
    if (s && s.query) item.append(element("span", { class: "sql" }, `${s.state === "active" ? "runs" : "ran last"}: ${s.query}`));
    const freed = isRoot ? freedBy.get(pid) : 0;
    if (isRoot) line.append(element("span", { class: "bad" }, ` blocks ${freed} session${freed === 1 ? "" : "s"}`));
    if (isRoot && meta("cancel") === "yes" && shown === null) {
      const button = element("button", { type: "button", "data-pid": pid }, "End it");
      button.addEventListener("click", () => confirmEnd(pid, s, freed));
      line.append(" ", button);
    }
    const children = (below.get(pid) || []).filter((child) => !seen.has(child.pid));
    children.forEach((child) => seen.add(child.pid));
    const drawnNow = children.slice(0, Math.max(left, 0));
    left -= drawnNow.length;
    if (drawnNow.length) item.append(element("ul", {}, ...drawnNow.map((child) => node(child.pid, false))));
    if (drawnNow.length < children.length) item.append(element("span", { class: "help" }, `and ${children.length - drawnNow.length} more`));
    return item;
  };
  const roots = [...below.keys()].filter((pid) => !(byPid.get(pid) && byPid.get(pid).blocked_by.length));
  const freedBy = new Map(), reached = new Set();
  for (const root of roots) {
    const on = reach(root);
    freedBy.set(root, on.size - 1);
    on.forEach((pid) => reached.add(pid));
  }
  roots.sort((a, b) => freedBy.get(b) - freedBy.get(a));
  const rings = [...below.keys()].filter((pid) => !reached.has(pid));
  const parts = [];
  if (roots.length) parts.push(element("ul", {}, ...roots.map((pid) => node(pid, true))));
  if (rings.length) parts.push(element("p", { class: "bad" }, `A ring: sessions ${rings.join(", ")} wait for each other.`));
  if (!parts.length) parts.push(element("p", {}, "Nobody waits for anybody."));
  byId("tree").replaceChildren(...parts);
}

function drawSessions(second) {
  const columns = ["pid", "user", "application", "state", "waits for", "in state", "transaction", "query"];
  const rows = (second ? second.sessions : []).map((s) => [`${s.pid}`, s.user, s.application, s.state,
    s.event ? `${s.class}: ${s.event}` : "", seconds(s.in_state_s), seconds(s.transaction_s), s.query]);
  byId("sessions").replaceChildren(...(rows.length ? rowsTable(columns, rows) : [element("p", {}, "No session is at work.")]));
}

function show(at) {
  shown = at;
  window.history.replaceState(null, "", at ? `#at=${at}` : "#");
  tick();
  drawPanels(true);
}

function confirmEnd(pid, s, freed) {
  asked = pid;
  const what = s && s.state === "active" ? "Its statement is cancelled." : "It runs nothing: its connection is ended and its transaction rolled back.";
  byId("confirm-text").textContent = `Session ${pid}${s ? ` of ${s.user}` : ""} blocks ${freed}. ${what}`;
  byId("confirm").showModal();
}

async function end() {
  byId("confirm").close();
  try {
    const said = await ask(`/api/cancel?pid=${asked}`, "POST");
    byId("done").textContent = said.error ? said.error : said.done ? `Session ${asked}: done.` : `Session ${asked} could not be ended.`;
  } catch (error) {
    byId("done").textContent = error.message;
  }
  tick();
}

async function tick() {
  try {
    const now = await get(shown ? `/api/now?at=${shown}` : "/api/now");
    const server = byId("server");
    server.className = now.connected ? "" : "bad";
    server.textContent = now.connected ? `${now.server}, ${now.version.split(",")[0]}` : `${now.server}: ${now.error || "connecting ..."}`;
    if (now.query_errors.length) server.append(element("span", { class: "bad" }, ` query ${now.query_errors[0].query}: ${now.query_errors[0].error}`));
    processors = now.processors;
    byId("moment").hidden = shown === null;
    if (shown) byId("moment-text").textContent = `as of ${clock(shown)}`;
    drawTree(now.second);
    drawSessions(now.second);
    const since = history_.length ? history_[history_.length - 1].at : 0;
    history_ = history_.concat(await get(`/api/history?since=${since}`)).slice(-3600);
    drawChart();
    const behind = shown && history_.length ? Math.round((shown - history_[history_.length - 1].at) / 1e6) : 0;
    byId("hour").value = behind;
    byId("chart").setAttribute("aria-valuenow", Math.max(0, SECONDS + behind));
    byId("chart").setAttribute("aria-valuetext", shown ? clock(shown) : "now");
    byId("logout").hidden = !sessionStorage.getItem("session");
    byId("role").textContent = now.may_log_in ? `as ${now.role}` : "";
  } catch (error) {
    byId("server").className = "bad";
    byId("server").textContent = error.message;
    if (error.login) askForLogin(error.message);
  }
}

function move(by) {
  const at = shown === null ? history_.length - 1 : history_.findIndex((s) => s.at === shown);
  const next = at + by;
  if (next >= history_.length - 1) show(null);
  else if (next >= 0) show(history_[next].at);
}

byId("chart").addEventListener("click", (event) => {
  const box = byId("chart").getBoundingClientRect();
  const second = byId("chart").secondAt && byId("chart").secondAt((event.clientX - box.left) / box.width);
  if (second) show(second.at);
});
byId("chart").addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -60, PageDown: 60 }[event.key];
  if (by) { event.preventDefault(); move(by); }
  if (event.key === "End") show(null);
});
byId("hour").addEventListener("input", (event) => {
  const behind = Number(event.target.value);
  if (behind === 0 || !history_.length) return show(null);
  const at = history_[history_.length - 1].at + behind * 1e6;
  const second = history_.find((s) => s.at >= at);
  show(second ? second.at : null);
});
byId("live").addEventListener("click", () => show(null));
byId("confirm-no").addEventListener("click", () => byId("confirm").close());
byId("confirm-yes").addEventListener("click", end);
const wanted = /^#at=(\d+)$/.exec(location.hash);
if (wanted) shown = Number(wanted[1]);
tick();
setInterval(() => { if (!byId("confirm").open && !byId("login").open) tick(); }, 1000);
