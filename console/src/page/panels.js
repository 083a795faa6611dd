// The tables below the chart, the rings of deadlocks, and the login. A table is asked for only while it can be seen.
"use strict";
const SHOWN_ROWS = 200, RING_MAX = 16;
const TEXTS = new Set(["query", "statements", "latest_statement", "taken_by", "root_taken_by", "root_statement", "evidence", "what_to_do", "waits", "description"]);
const visible = new Set();
const drawnAt = new Map();

// A field: a link to a statement's page, a trend, a moment, a number or a text.
function cell(column, value, numeric) {
  if (value === null || value === undefined) return element("td", {});
  if (column === "queryid") return element("td", {}, statementLink(value));
  if (Array.isArray(value)) return element("td", {}, trendOf(value, 90, 18, "Trend of the last hour"));
  if (column.endsWith("_us")) return element("td", {}, clock(Number(value)));
  return element("td", { class: numeric(value) ? "number" : TEXTS.has(column) ? "sql" : "" }, `${value}`);
}

function rowsTable(columns, rows) {
  const numeric = (text) => text !== null && /^-?[0-9.]+$/.test(text);
  const head = element("tr", {}, ...columns.map((c) => element("th", { scope: "col" }, c === "queryid" ? "statement" : c.replace(/_us$/, "").replaceAll("_", " "))));
  const body = rows.slice(0, SHOWN_ROWS).map((row) => element("tr", {}, ...row.map((text, i) =>
    cell(columns[i], text, numeric))));
  const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
  return rows.length > SHOWN_ROWS ? [table, element("p", { class: "help" }, `and ${rows.length - SHOWN_ROWS} more`)] : [table];
}

// A deadlock: its sessions on a circle, and what each of them did.
function ring(of) {
  const svg = drawn("svg", { viewBox: "-130 -130 260 260", role: "img", "aria-label": `A ring of ${of.length} sessions` });
  const marker = drawn("marker", { id: `arrow-${of[0].number}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" });
  marker.append(drawn("path", { d: "M0,0 L8,4 L0,8 z" }));
  const definitions = drawn("defs", {});
  definitions.append(marker);
  svg.append(definitions);
  const nodes = of.slice(0, RING_MAX), r = 22, big = 96;
  const at = nodes.map((_, i) => { const a = 2 * Math.PI * i / nodes.length - Math.PI / 2; return [big * Math.cos(a), big * Math.sin(a)]; });
  const place = new Map(nodes.map((n, i) => [n.pid, i]));
  nodes.forEach((n, i) => {
    const to = place.get(n.waits_for);
    if (to === undefined) return;
    const [x, y] = at[i], [u, v] = at[to];
    const length = Math.hypot(u - x, v - y) || 1, dx = (u - x) / length * (r + 3), dy = (v - y) / length * (r + 3);
    // Between two sessions there are two arrows: each bends to its own side.
    const bend = nodes.length === 2 ? 0.25 : 0, mx = (x + u) / 2 + (v - y) * bend, my = (y + v) / 2 - (u - x) * bend;
    svg.append(drawn("path", { d: `M${x + dx},${y + dy} Q${mx},${my} ${u - dx},${v - dy}`, "marker-end": `url(#arrow-${of[0].number})` }));
  });
  nodes.forEach((n, i) => {
    svg.append(drawn("circle", { cx: at[i][0], cy: at[i][1], r, class: n.victim === "t" ? "victim" : "" }));
    const text = drawn("text", { x: at[i][0], y: at[i][1] });
    text.textContent = n.pid;
    svg.append(text);
  });
  const list = element("ol", {}, ...of.map((n) => element("li", {},
    element("strong", {}, n.pid), ` ${n.usename || ""}${n.application_name ? ` (${n.application_name})` : ""}${n.victim === "t" ? ", the victim" : ""}: `,
    n.wants_mode === undefined ? `waits for ${n.wants}` : `wants ${n.wants_mode} on ${n.wants}, holds ${n.holds}`,
    ...(n.held_by_statement === undefined ? [] : [element("span", { class: "sql" }, `took what it holds by: ${n.held_by_statement || "a statement that is not known"}`)]),
    element("span", { class: "sql" }, n.statements || ""))));
  return element("div", { class: "ring", "data-deadlock": of[0].number }, svg, list);
}

function rings(columns, rows) {
  const byNumber = new Map();
  for (const row of rows) {
    const participant = Object.fromEntries(columns.map((c, i) => [c, row[i]]));
    if (!byNumber.has(participant.number)) byNumber.set(participant.number, []);
    byNumber.get(participant.number).push(participant);
  }
  const when = (one) => one.happened_us ? clock(Number(one.happened_us)) : one.happened;
  return [...byNumber.values()].flatMap((of) => [element("h3", {}, `Deadlock ${of[0].number}, ${when(of[0])}`), ring(of)]);
}

// The statements with a trend before their texts.
function withTrends({ columns, rows, trends }) {
  const id = columns.indexOf("queryid"), text = columns.indexOf("query");
  const put = (list, value) => [...list.slice(0, text), value, ...list.slice(text)];
  return rowsTable(put(columns, "trend"), rows.map((row) => put(row, trends[row[id]] || null)));
}

async function drawPanel(box) {
  const name = box.id;
  const table = await get(`/api/table/${name}${shown ? `?at=${shown}` : ""}`);
  const parts = table.error ? [element("p", {}, table.error)]
    : !table.rows.length ? [element("p", {}, "Nothing.")]
    : name === "deadlocks" ? rings(table.columns, table.rows)
    : table.trends ? withTrends(table) : rowsTable(table.columns, table.rows);
  if (table.note) parts.unshift(element("p", { class: "help" }, table.note));
  if (table.sql) {
    const sql = element("details", {}, element("summary", {}, "The SQL behind it"), element("pre", {}, table.sql));
    const old = box.querySelector("details");
    sql.open = !!(old && old.open);
    parts.push(sql);
  }
  box.replaceChildren(...parts);
  box.dataset.drawn = "yes";
}

function drawPanels(all = false) {
  const now = performance.now();
  for (const box of visible) {
    if (!all && now - (drawnAt.get(box) ?? -Infinity) < 1000 * Number(box.dataset.every)) continue;
    drawnAt.set(box, now);
    drawPanel(box).catch((error) => { if (!error.login) box.replaceChildren(element("p", { class: "bad" }, error.message)); });
  }
}

function askForLogin(why) {
  if (byId("login").open) return;
  sessionStorage.removeItem("session");
  byId("login-error").textContent = why;
  byId("login").showModal();
}

addEventListener("DOMContentLoaded", () => {
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) entry.isIntersecting ? visible.add(entry.target) : visible.delete(entry.target);
    drawPanels();
  }, { rootMargin: "300px" });
  document.querySelectorAll(".panel").forEach((box) => watcher.observe(box));
  setInterval(() => { if (!byId("login").open && !document.hidden) drawPanels(); }, 1000);
  byId("login-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const said = await ask("/api/login", "POST", JSON.stringify({ role: byId("login-role").value, password: byId("login-password").value }));
      sessionStorage.setItem("session", said.session);
      byId("login-password").value = "";
      byId("login").close();
      tick();
      drawPanels(true);
    } catch (error) {
      byId("login-error").textContent = error.message;
    }
  });
  byId("logout").addEventListener("click", async () => {
    await ask("/api/logout", "POST").catch(() => {});
    sessionStorage.removeItem("session");
    location.reload();
  });
});
