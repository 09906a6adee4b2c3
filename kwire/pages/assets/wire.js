// Reads Kafka messages from bytes, by the layouts of layouts.js, and keeps for each byte the field that it belongs to.
// It accepts and refuses what kwire's decode() does, and names the same byte in an error; reasons are kwire's texts.
(function () {
  "use strict";
  const WIDTH = {bool: 1, int8: 1, int16: 2, uint16: 2, int32: 4, uint32: 4, int64: 8, float64: 8, uuid: 16};
  const MOST_ROWS = 100_000;  // a row costs memory, and few bytes can ask for many
  const MAX_STRING = 0x7fff, MAX_TAG = 0x7ffffffe, UNKNOWN = "_unknownTags";
  const API_VERSIONS = 18, CONTROLLED_SHUTDOWN = 7, UNSUPPORTED_VERSION = 35;
  const DIGITS = Array.from({length: 256}, (_, byte) => byte.toString(16).padStart(2, "0"));

  class WireError extends Error {
    constructor(reason, offset, path, what) {
      super(reason);
      Object.assign(this, {reason, offset, path: path || "", what: what || ""});
    }
    get text() {
      const place = `${this.what} ${this.path}`.trim();
      return `${place ? place + ": " : ""}${this.reason}, at byte ${this.offset}`;
    }
  }

  // Ranges of versions: "3+", "0-4", "2", "none" or nothing.
  function has(range, version) {
    if (!range || range === "none") return false;
    if (range.endsWith("+")) return version >= parseInt(range, 10);
    const [low, high] = range.split("-");
    return version >= Number(low) && version <= Number(high === undefined ? low : high);
  }

  // What one version of a struct is: its fields in the order of the bytes, its tags, and its minimum size.
  function planOf(fields, version, flexible) {
    const plan = {fields: [], tags: new Map(), foreign: new Set(), flexible, least: flexible ? 1 : 0, all: fields};
    for (const field of fields) {
      const tagged = has(field.tagged, version);
      if (!tagged) {
        if (field.tag !== undefined && flexible) plan.foreign.add(field.tag);
        if (!has(field.versions, version)) continue;
      }
      const op = opOf(field, version, flexible, tagged);
      if (tagged) plan.tags.set(field.tag, op);
      else {
        plan.fields.push(op);
        plan.least += op.least;
      }
    }
    return plan;
  }

  function opOf(field, version, flexible, tagged) {
    const array = field.type.startsWith("[]"), element = array ? field.type.slice(2) : field.type;
    const op = {
      field, name: field.name, array, element, tagged, struct: !(element in WIDTH) && !["string", "bytes", "records"].includes(element),
      compact: flexible && (field.flexible === undefined || has(field.flexible, version)), nullable: has(field.nullable, version),
    };
    if (op.struct) op.sub = planOf(field.fields || [], version, flexible);
    if (array) {
      const need = op.struct ? op.sub.least : element === "string" ? (op.compact ? 1 : 2) : WIDTH[element];
      op.need = need || 1;
    }
    op.least = !array && element in WIDTH ? WIDTH[element] : !array && op.struct ? (op.nullable ? 1 : op.sub.least)
      : op.compact ? 1 : element === "string" && !array ? 2 : 4;
    op.type = (array ? "[]" : "") + element;
    return op;
  }

  const plans = new Map();
  function planFor(name, version) {
    const layout = window.kafkaLayouts[name];
    const known = `${name} ${version}`;
    if (!plans.has(known)) plans.set(known, planOf(layout.fields, version, has(layout.flexible, version)));
    return plans.get(known);
  }

  // ---- text

  // As Java reads bytes that are not UTF-8: how many of them are one character, or one U+FFFD.
  function step(bytes, at, end) {
    const lead = bytes[at], left = end - at, follows = k => left > k && (bytes[at + k] & 0xc0) === 0x80, next = bytes[at + 1];
    if (lead < 0x80) return [1, true];
    if (lead < 0xc2 || lead > 0xf4) return [1, false];
    if (lead < 0xe0) return follows(1) ? [2, true] : [1, false];
    if (lead < 0xf0) {
      if (!follows(1) || (lead === 0xe0 && next < 0xa0)) return [1, false];
      if (!follows(2)) return [2, false];
      return [3, !(lead === 0xed && next >= 0xa0)];
    }
    if (!follows(1) || (lead === 0xf0 && next < 0x90) || (lead === 0xf4 && next > 0x8f)) return [1, false];
    if (!follows(2)) return [2, false];
    return follows(3) ? [4, true] : [3, false];
  }

  const strictText = new TextDecoder("utf-8", {fatal: true, ignoreBOM: true});
  function javaText(bytes, at, end) {
    let text = "";
    while (at < end) {
      const [size, good] = step(bytes, at, end);
      text += good ? strictText.decode(bytes.subarray(at, at + size)) : "\ufffd";
      at += size;
    }
    return text;
  }

  function hex(bytes) {
    let text = "";
    for (const byte of bytes) text += DIGITS[byte];
    return text;
  }

  function base64(bytes) {
    let text = "";
    for (let at = 0; at < bytes.length; at += 0x6000) text += btoa(String.fromCharCode(...bytes.subarray(at, at + 0x6000)));
    return text;
  }

  const uuidText = bytes => base64(bytes).slice(0, 22).replaceAll("+", "-").replaceAll("/", "_");

  class Float {  // a float64, with its bits
    constructor(number, bits) {
      this.number = number;
      this.bits = bits;
    }
  }

  // JSON with whole 64-bit numbers; keys in their order, or sorted.
  function toJson(value, {sorted = false, indent = "", float = value => String(value.number)} = {}) {
    function write(item, before) {
      if (item === null) return "null";
      if (typeof item === "string") return JSON.stringify(item);
      if (item instanceof Float) return float(item);
      if (typeof item !== "object") return String(item);
      const list = Array.isArray(item), inner = before + indent;
      let rows = list ? item.map(one => write(one, inner)) : null;
      if (!list) {
        let entries = [...item.entries()];
        if (sorted) entries.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
        rows = entries.map(([key, one]) => `${JSON.stringify(key)}:${indent ? " " : ""}${write(one, inner)}`);
      }
      const [open, close] = list ? "[]" : "{}";
      if (!rows.length) return open + close;
      return indent ? `${open}\n${inner}${rows.join(`,\n${inner}`)}\n${before}${close}` : open + rows.join(",") + close;
    }
    return write(value, "");
  }

  // ---- defaults

  function isDefault(field, value) {
    if (field.default === "null") return value === null;
    const array = field.type.startsWith("[]");
    if (array) return value !== null && value.length === 0;
    switch (field.type) {
      case "string": return value === (field.default || "");
      case "bytes": return value !== null && value.length === 0;
      case "records": return value === null;
      case "uuid": return value.every(byte => byte === 0);
      case "bool": return value === (field.default === "true");
      case "float64": return value.bits === "0000000000000000";
      case "int64": return value === BigInt(field.default || 0);
    }
    if (field.type in WIDTH) return value === Number(field.default || 0);
    if (value === null || value.unknown.length) return false;
    return [...value.fields].every(([name, [inner, one]]) => isDefault(inner, one));
  }

  // ---- reading

  class Reader {
    // rows: one for every field, {at, size, depth, path, type, value}; the rows with a size cover the bytes read
    constructor(bytes, position, lenient, rows) {
      Object.assign(this, {bytes, at: position, end: bytes.length, lenient, rows, more: 0, path: [], what: ""});
      this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    fail(reason, at = this.at) {
      this.at = at;
      return new WireError(reason, at, this.path.map(piece => typeof piece === "number" ? `[${piece}]` : `.${snake(piece)}`).join(""), this.what);
    }
    get left() { return this.end - this.at; }
    need(size) {
      if (size > this.left) throw this.fail(`${size} bytes needed, ${this.left} remaining`);
    }
    row(at, type, value, name) {
      if (this.rows.length >= MOST_ROWS) this.more++;
      else this.rows.push({at, size: this.at - at, depth: this.path.length, path: pathText(this.path), name, type, value});
    }
    uvarint() {
      const start = this.at;
      let value = 0, at = start;
      for (let shift = 0; shift < 35; shift += 7) {
        if (at === this.end) throw this.fail(`1 bytes needed, ${this.left} remaining`);
        const byte = this.bytes[at++];
        value += (byte & 0x7f) * 2 ** shift;
        if (byte < 0x80) {
          const cut = value >= 2 ** 32, size = at - start;
          value = value % 2 ** 32;
          const shortest = value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x200000 ? 3 : value < 0x10000000 ? 4 : 5;
          if (!this.lenient && (cut || size !== shortest)) throw this.fail("overlong varint");
          this.at = at;
          return value;
        }
      }
      throw this.fail("varint longer than 5 bytes");
    }
    length(compact, width) {  // -1: null
      let size;
      if (compact) {
        size = (this.uvarint() - 1) | 0;
        if (size < -1) {
          if (!this.lenient) throw this.fail(`negative length ${size}`);
          size = -1;
        }
        return size;
      }
      this.need(width);
      size = width === 2 ? this.view.getInt16(this.at) : this.view.getInt32(this.at);
      if (size < -1) {
        if (!this.lenient) throw this.fail(`negative length ${size}`);
        size = -1;
      }
      this.at += width;
      return size;
    }
    null(op, start) {
      if (!op.nullable) throw this.fail("null in a field that is not nullable in this version", start);
      this.row(start, op.type, "null");
      return null;
    }
    fixed(type) {
      const at = this.at;
      this.need(WIDTH[type]);
      if (type === "bool" && this.bytes[at] > 1 && !this.lenient) throw this.fail(`bool byte ${this.bytes[at]} is neither 0 nor 1`);
      this.at += WIDTH[type];
      switch (type) {
        case "bool": return this.bytes[at] !== 0;
        case "int8": return this.view.getInt8(at);
        case "int16": return this.view.getInt16(at);
        case "uint16": return this.view.getUint16(at);
        case "int32": return this.view.getInt32(at);
        case "uint32": return this.view.getUint32(at);
        case "int64": return this.view.getBigInt64(at);
        case "float64": return new Float(this.view.getFloat64(at), hex(this.bytes.subarray(at, at + 8)));
      }
      return this.bytes.slice(at, at + 16);  // uuid
    }
    textSize(compact) {
      const size = this.length(compact, 2);
      if (size > MAX_STRING) throw this.fail(`string of ${size} bytes exceeds 32767`);
      if (size > 0) this.need(size);
      return size;
    }
    text(size) {
      const bytes = this.bytes.subarray(this.at, this.at + size);
      let text;
      try {
        text = strictText.decode(bytes);
      } catch (error) {
        if (!this.lenient) throw this.fail("invalid UTF-8");
        text = javaText(bytes, 0, bytes.length);
      }
      this.at += size;
      return text;
    }
    field(op) {
      const start = this.at;
      if (op.array) return this.array(op);
      if (op.element in WIDTH) {
        const value = this.fixed(op.element);
        this.row(start, op.type, shown(value));
        return value;
      }
      if (op.element === "string") {
        const size = this.textSize(op.compact);
        if (size < 0) return this.null(op, start);
        const text = this.text(size);
        this.row(start, op.type, JSON.stringify(text));
        return text;
      }
      if (op.struct) {
        if (op.nullable) {
          if (op.tagged) {
            const mark = this.uvarint();
            if (mark > 1 && !this.lenient) throw this.fail(`null marker ${mark} is neither -1 nor 1`, start);
            if ((mark | 0) <= 0) return this.null(op, start);
          } else {
            this.need(1);
            const mark = this.view.getInt8(this.at);
            if (mark !== 1 && mark !== -1 && !this.lenient) throw this.fail(`null marker ${mark} is neither -1 nor 1`);
            this.at += 1;
            if (mark < 0) return this.null(op, start);
          }
        }
        this.row(start, op.type, "");
        return this.struct(op.sub);
      }
      const size = this.length(op.compact, 4);  // bytes, records
      if (size < 0) return this.null(op, start);
      this.need(size);
      this.at += size;
      const bytes = this.bytes.slice(this.at - size, this.at);
      this.row(start, op.type, shown(bytes));
      return bytes;
    }
    array(op) {
      const start = this.at, count = this.length(op.compact, 4);
      if (count < 0) return this.null(op, start);
      if (count * op.need > this.left) throw this.fail(`array of ${count} elements exceeds the ${this.left} bytes remaining`);
      this.row(start, op.type, `${count} element${count === 1 ? "" : "s"}`);
      const items = [];
      this.path.push(0);
      for (let index = 0; index < count; index++) {
        const at = this.at;
        this.path[this.path.length - 1] = index;
        if (op.struct) {
          this.row(at, op.element, "");
          items.push(this.struct(op.sub));
        } else if (op.element === "string") {
          const size = this.textSize(op.compact);
          if (size < 0) throw this.fail("null in a field that is not nullable in this version", at);
          items.push(this.text(size));
          this.row(at, op.element, JSON.stringify(items[index]));
        } else {
          items.push(this.fixed(op.element));
          this.row(at, op.element, shown(items[index]));
        }
      }
      this.path.pop();
      return items;
    }
    struct(plan) {
      const made = {plan, fields: new Map(), unknown: []};
      for (const op of plan.fields) made.fields.set(op.name, [op.field, this.inside(op.name, () => this.field(op))]);
      if (plan.flexible) this.tags(plan, made);
      return made;
    }
    inside(name, read) {
      this.path.push(name);
      const value = read();
      this.path.pop();
      return value;
    }
    tags(plan, made) {
      const start = this.at, count = this.uvarint();
      if (count > Math.floor(this.left / 2)) throw this.fail(`${count} tagged fields exceed the ${this.left} bytes remaining`);
      this.row(start, "uvarint", `${count} tagged field${count === 1 ? "" : "s"}`, "tagged fields");
      let last = 0;
      for (let index = 0; index < count; index++) {
        const entry = this.at, tag = this.uvarint(), size = this.uvarint();
        if (!this.lenient) {
          if (index && tag <= last) throw this.fail(tag === last ? `duplicate tag ${tag}` : `tags out of order: ${tag}`, entry);
          if (tag > MAX_TAG) throw this.fail(`invalid tag number ${tag}`, entry);
        }
        last = tag;
        if (plan.foreign.has(tag)) throw this.fail(`tag ${tag} is not valid in this version`, entry);
        const op = plan.tags.get(tag);
        if (op) {
          this.row(entry, "tag", `tag ${tag}, ${size} bytes`, "tag and size");
          this.inside(op.name, () => this.tag(op, size, made));
        } else {
          this.row(entry, "tag", `tag ${tag}, ${size} bytes`, "tag and size");
          this.need(size);
          const value = this.at;
          this.at += size;
          if (size) this.row(value, "bytes", shown(this.bytes.subarray(value, this.at)), `unknown tag ${tag}`);
          made.unknown.push([tag, this.bytes.slice(value, this.at)]);
        }
      }
    }
    tag(op, size, made) {
      const start = this.at, value = this.field(op);
      made.fields.set(op.name, [op.field, value]);
      if (this.lenient) return;
      if (this.at - start !== size) throw this.fail(`tagged field does not have its declared size of ${size} bytes`, start);
      if (isDefault(op.field, value)) throw this.fail(`tag ${op.field.tag} is present with its default value`, start);
    }
  }

  // "topics.[0].name" of a path as people write it: topics[0].name
  const pathText = path => path.reduce((text, piece) => text + (typeof piece === "number" ? `[${piece}]` : (text ? "." : "") + piece), "");

  function snake(name) {
    let out = "", capital = true;
    for (const letter of name[0].toUpperCase() + name.slice(1)) {
      const upper = letter >= "A" && letter <= "Z";
      if (upper && !capital) out += "_";
      out += letter.toLowerCase();
      capital = upper;
    }
    return out;
  }

  function shown(value) {
    if (value instanceof Float) return String(value.number);
    if (value instanceof Uint8Array) {
      return value.length === 16 ? `${hex(value)} (${uuidText(value)})` : `${value.length} bytes${value.length ? ": " : ""}${hex(value.subarray(0, 32))}${value.length > 32 ? "…" : ""}`;
    }
    return String(value);
  }

  // As kwire.to_json: what holds its default in a tag is left out, bytes are base64, fields in the order of the schema.
  function jsonValue(made) {
    const value = new Map(), tagged = new Set([...made.plan.tags.values()].map(op => op.name));
    for (const field of made.plan.all) {
      const kept = made.fields.get(field.name);
      if (kept === undefined || (tagged.has(field.name) && isDefault(field, kept[1]))) continue;
      value.set(field.name, jsonField(kept[1], field.type));
    }
    if (made.unknown.length) value.set(UNKNOWN, new Map(made.unknown.map(([tag, bytes]) => [String(tag), base64(bytes)])));
    return value;
  }

  function jsonField(value, type) {
    if (Array.isArray(value)) return value.map(item => jsonField(item, type.slice(2)));
    if (value instanceof Uint8Array) return type === "uuid" ? uuidText(value) : base64(value);
    return value !== null && typeof value === "object" && value.plan ? jsonValue(value) : value;
  }

  // ---- what can be read

  function check(name, version, offset = 0) {
    const layout = Object.hasOwn(window.kafkaLayouts, name) ? window.kafkaLayouts[name] : null;
    if (!layout) throw new WireError(`unknown message ${JSON.stringify(name)}`, offset);
    if (!Number.isInteger(version) || !has(layout.versions, version)) throw new WireError(`${name} supports versions ${layout.versions}, not ${version}`, offset);
  }

  function message(reader, name, version) {
    reader.what = `${name} v${version}`;
    reader.rows.push({at: reader.at, size: 0, depth: 0, path: "", type: "message", value: "", name: `${name} v${version}`});
    return reader.struct(planFor(name, version));
  }

  function atEnd(reader) {
    if (reader.left && !reader.lenient) throw reader.fail(`${reader.left} bytes remaining after the message`);
  }

  const nameOf = (key, type) => Object.keys(window.kafkaLayouts).find(name => window.kafkaLayouts[name].key === key && window.kafkaLayouts[name].type === type);

  function headerVersion(name, version) {
    const layout = window.kafkaLayouts[name], flexible = has(layout.flexible, version) ? 1 : 0;
    if (layout.type === "request") return layout.key === CONTROLLED_SHUTDOWN && version === 0 ? 0 : 1 + flexible;
    return layout.key === API_VERSIONS ? 0 : flexible;
  }

  function request(reader) {
    if (reader.left < 4) throw new WireError(`4 bytes needed, ${reader.left} remaining`, reader.at, "", "RequestHeader");
    const key = reader.view.getInt16(reader.at), version = reader.view.getInt16(reader.at + 2), name = nameOf(key, "request");
    if (!name) throw new WireError(`unknown API key ${key}`, reader.at);
    check(name, version, reader.at + 2);
    const header = message(reader, "RequestHeader", headerVersion(name, version));
    return {name, version, header, message: message(reader, name, version)};
  }

  function response(reader, name, version) {
    check(name, version);
    const header = message(reader, "ResponseHeader", headerVersion(name, version)), at = reader.at, kept = reader.rows.length;
    if (window.kafkaLayouts[name].key === API_VERSIONS && version && reader.left >= 2 && reader.view.getInt16(at) === UNSUPPORTED_VERSION) {
      try {  // a broker that lacks the version answers in version 0 (KIP-511)
        const old = message(reader, name, 0);
        atEnd(reader);
        return {name, version: 0, header, message: old};
      } catch (error) {
        if (!(error instanceof WireError)) throw error;
        reader.at = at;
        reader.path = [];
        reader.rows.length = kept;
      }
    }
    return {name, version, header, message: message(reader, name, version)};
  }

  // kind: "request", "response" (name: of the response message) or "message". sized: the 4-byte size of the frame is
  // before it. Returns {name, version, header, message (JSON values), rows, more (fields that have no row), end, error}: error is
  // null or a WireError.
  function inspect(kind, bytes, {name = "", version = 0, lenient = false, sized = false} = {}) {
    const rows = [], result = {name, version, header: null, message: null, rows, end: 0, error: null};
    const reader = new Reader(bytes, 0, lenient, rows);
    try {
      if (sized) {
        reader.what = "frame";
        const size = reader.fixed("int32");
        if (size < 0) throw reader.fail(`invalid frame size ${size}`, 0);
        reader.row(0, "int32", String(size), "size of the frame");
        if (size > reader.left) throw reader.fail(`frame of ${size} bytes exceeds the ${reader.left} bytes remaining`);
        reader.end = reader.at + size;
      }
      if (kind === "message") check(name, version);
      const read = kind === "request" ? request(reader) : kind === "response" ? response(reader, name, version)
        : {name, version, header: null, message: message(reader, name, version)};
      atEnd(reader);
      Object.assign(result, read, {header: read.header && jsonValue(read.header), message: jsonValue(read.message)});
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      result.error = error;
    }
    result.end = reader.at;
    result.more = reader.more;
    return result;
  }

  // ---- pasted text

  // The bytes of hex (with spaces, colons, commas, 0x or \x before bytes, offsets and text of a hex dump) or base64.
  function bytesOf(text) {
    const dump = undump(text);
    const plain = (dump === null ? text : dump).replace(/(?:0x|\\x)(?=[0-9a-f])/gi, " ").replace(/[\s:,;]+/g, " ").trim();
    if (/^[0-9a-f ]*$/i.test(plain)) {
      const digits = plain.replaceAll(" ", "");
      if (digits.length % 2) throw new WireError(`an odd number of hex digits: ${digits.length}`, digits.length >> 1);
      const bytes = new Uint8Array(digits.length / 2);
      for (let at = 0; at < bytes.length; at++) bytes[at] = parseInt(digits.substr(2 * at, 2), 16);
      return {bytes, form: "hex"};
    }
    const packed = text.replace(/\s+/g, "").replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, "");
    const bad = packed.search(/[^A-Za-z0-9+/]/);
    if (bad >= 0 || packed.length % 4 === 1) throw new WireError("neither hex nor base64", 0);
    return {bytes: Uint8Array.from(atob(packed), character => character.charCodeAt(0)), form: "base64"};
  }

  // The digits of a hex dump as of hexdump -C, xxd or Wireshark, without its offsets and its text; null: it is none.
  function undump(text) {
    const rows = [];
    let bytes = 0;
    for (const line of text.split("\n")) {
      if (!line.trim()) continue;
      const match = /^\s*([0-9a-f]{4,8}):?(?:\s+(\S.*))?$/i.exec(line.trimEnd());
      if (match === null || parseInt(match[1], 16) !== bytes) return null;
      const rest = match[2] || "", digits = (rest.includes("|") ? rest.split("|")[0] : rest.split(/ {2,}/)[0]).replace(/\s/g, "");
      if (/[^0-9a-f]/i.test(digits) || digits.length % 2 || digits.length > 64) return null;
      rows.push(digits);
      bytes += digits.length / 2;
    }
    return bytes ? rows.join(" ") : null;
  }

  window.kafkaWire = {inspect, bytesOf, toJson, hex, has, WireError};
})();
