// The inspector's page: what is pasted goes through kafkaWire; all text is set as text, never as HTML.
(function () {
  "use strict";
  const MOST_BYTES = 8192, MOST_ROWS = 4000, MOST_JSON = 1 << 18, MOST_TEXT = 8 << 20;
  const at = id => document.getElementById(id);
  const [kind, name, version, sized, lenient, box] = ["kind", "name", "version", "sized", "lenient", "bytes"].map(at);
  let cells = [], rows = [], picked = -1;

  function element(tag, text, className) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  function options(select, values, wanted) {
    select.replaceChildren(...values.map(value => element("option", String(value))));
    if (values.map(String).includes(String(wanted))) select.value = wanted;
  }

  function names() {
    const type = kind.value, layouts = window.kafkaLayouts, before = name.value;
    const some = Object.keys(layouts).filter(one => type === "message" || layouts[one].type === type).sort();
    options(name, some, before || (type === "response" ? "ApiVersionsResponse" : "FetchRequest"));
    at("choose-name").hidden = at("choose-version").hidden = type === "request" || type === "records";
    lenient.closest("label").hidden = type === "records";
    sized.closest("label").hidden = type === "message" || type === "records";
    versions();
  }

  function versions() {
    const layout = window.kafkaLayouts[name.value];
    if (!layout) return;
    const [low, high] = layout.versions.split("-").map(Number), before = version.value;
    options(version, Array.from({length: (high ?? low) - low + 1}, (_, index) => low + index), before);
    if (!before || version.value !== before) version.selectedIndex = version.options.length - 1;
  }

  function read() {
    const text = box.value;
    at("result").hidden = true;
    at("outcome").className = "";
    if (!text.trim()) return void (at("outcome").textContent = "");
    if (text.length > MOST_TEXT) return outcome("bad", `${text.length} characters are more than this page reads (${MOST_TEXT}): use kwire decode`);
    let pasted, result;
    try {
      pasted = window.kafkaWire.bytesOf(text);
    } catch (error) {
      return outcome("bad", error.reason || String(error));
    }
    const {bytes, form} = pasted;
    const given = {name: name.value, version: Number(version.value), lenient: lenient.checked, sized: sized.checked && kind.value !== "message"};
    if (kind.value === "records") result = window.kafkaRecords.inspect(bytes);
    else result = window.kafkaWire.inspect(kind.value, bytes, given);
    const read = result.name && (result.message !== null || kind.value === "message") ? `${result.name} v${result.version}: ` : "";
    if (result.error) outcome("bad", result.error.text + hint(bytes, result.error));
    else outcome("good", `${read}${bytes.length} bytes of ${form}, all read${result.summary ? ": " + result.summary : ""}`);
    show(bytes, result);
  }

  function hint(bytes, error) {
    const size = bytes.length >= 4 ? new DataView(bytes.buffer).getInt32(0) : -1;
    if (kind.value !== "message" && kind.value !== "records" && !sized.checked && size === bytes.length - 4) return ". The first 4 bytes are the size of the rest: tick the box for it?";
    return "";
  }

  function outcome(className, text) {
    at("outcome").className = className;
    at("outcome").textContent = text;
  }

  function show(bytes, result) {
    const owner = new Int32Array(Math.min(bytes.length, MOST_BYTES)).fill(-1), wrong = result.error ? result.error.offset : -1;
    rows = result.rows;
    rows.forEach((row, index) => owner.fill(index, Math.min(row.at, owner.length), Math.min(row.at + row.size, owner.length)));
    dump(bytes, owner, wrong);
    const body = at("rows"), made = rows.slice(0, MOST_ROWS).map(line);
    if (result.error) made.push(wrongLine(result.error, made.length));
    body.replaceChildren(...made);
    const all = rows.length + (result.more || 0);
    at("more").textContent = all > MOST_ROWS ? `The first ${MOST_ROWS} of ${all} fields.` : "";
    const value = result.header ? new Map([["header", result.header], ["message", result.message]]) : result.message;
    at("as-json").hidden = value === null;
    if (value !== null) {
      const json = window.kafkaWire.toJson(value, {indent: "  "});
      at("json").textContent = json.length > MOST_JSON ? json.slice(0, MOST_JSON) + `\n… ${json.length} characters in all` : json;
    }
    at("result").hidden = false;
    pick(-1);
  }

  function dump(bytes, owner, wrong) {
    const lines = [], shown = owner.length, ends = wrong === bytes.length && shown === bytes.length ? 1 : 0;
    cells = [];
    for (let start = 0; start < shown + ends; start += 16) {
      const line = element("div", undefined, "line"), text = [];
      line.append(element("span", start.toString(16).padStart(6, "0"), "offset"));
      for (let index = start; index < Math.min(start + 16, shown); index++) {
        const cell = element("span", window.kafkaWire.hex(bytes.subarray(index, index + 1)));
        cell.className = "byte" + (owner[index] < 0 ? " unread" : owner[index] % 2 ? " odd" : "") + (index === wrong ? " wrong" : "");
        cell.dataset.row = owner[index];
        cells.push(cell);
        line.append(cell);
        text.push(bytes[index] > 31 && bytes[index] < 127 ? String.fromCharCode(bytes[index]) : ".");
      }
      if (ends && shown < start + 16) {  // more bytes were needed where the input ends
        const end = element("span", "··", "byte unread wrong");
        end.dataset.row = -1;
        end.title = "the input ends here";
        line.append(end);
      }
      line.append(element("span", text.join(""), "text"));
      lines.push(line);
    }
    if (bytes.length > owner.length) lines.push(element("div", `${bytes.length - owner.length} more bytes`, "line"));
    at("dump").replaceChildren(...lines);
  }

  function line(row, index) {
    const made = element("tr");
    const number = text => element("td", text, "number");
    const offset = number(String(row.at)), size = number(row.size ? String(row.size) : "");
    offset.dataset.label = "at";
    size.dataset.label = "bytes";
    const field = element("td", undefined, "deep" + Math.min(row.depth, 9)), button = element("button", row.name ?? row.path.split(".").pop());
    button.type = "button";
    button.title = row.path;
    button.dataset.row = index;
    field.append(button);
    made.append(offset, size, field, element("td", row.type, "type"), element("td", row.value.length > 400 ? row.value.slice(0, 400) + "…" : row.value, "value"));
    made.dataset.row = index;
    return made;
  }

  function wrongLine(error) {
    const made = element("tr", undefined, "wrong"), what = element("td", error.path || error.what), why = element("td", error.reason, "value");
    made.append(element("td", String(error.offset), "number"), element("td", ""), what, element("td", "error"), why);
    return made;
  }

  function pick(index) {
    for (const cell of cells) cell.classList.toggle("picked", index >= 0 && cell.dataset.row === String(index));
    for (const row of at("rows").children) row.classList.toggle("picked", index >= 0 && row.dataset.row === String(index));
    picked = index;
    const row = rows[index];
    at("picked").textContent = row ? `Byte ${row.at}${row.size > 1 ? ` to ${row.at + row.size - 1}` : ""}: ${row.name || row.path} (${row.type})${row.value ? " = " + row.value.slice(0, 200) : ""}` : "";
  }

  at("dump").addEventListener("click", event => {
    const cell = event.target.closest(".byte");
    if (!cell || Number(cell.dataset.row) < 0) return;
    pick(Number(cell.dataset.row));
    const row = at("rows").querySelector(`[data-row="${picked}"]`);
    if (row) row.scrollIntoView({block: "nearest"});
  });
  at("rows").addEventListener("click", event => {
    const button = event.target.closest("button");
    if (!button) return;
    pick(Number(button.dataset.row));
    const cell = cells.find(one => one.dataset.row === button.dataset.row);
    if (cell) cell.scrollIntoView({block: "nearest"});
  });
  kind.addEventListener("change", () => { names(); read(); });
  name.addEventListener("change", () => { versions(); read(); });
  for (const one of [version, sized, lenient]) one.addEventListener("change", read);
  box.addEventListener("input", read);
  at("inspector").addEventListener("submit", event => event.preventDefault());

  // inspect.html?kind=message&name=FetchRequest&version=12&bytes=… reads at once
  const given = new URLSearchParams(location.search);
  if ([...kind.options].some(option => option.value === given.get("kind"))) kind.value = given.get("kind");
  names();
  if ([...name.options].some(option => option.value === given.get("name"))) { name.value = given.get("name"); versions(); }
  if (given.get("version")) version.value = given.get("version");
  sized.checked = given.has("sized");
  lenient.checked = given.has("lenient");
  box.value = given.get("bytes") || box.value;
  read();
})();
