// Reads record batches of magic 0, 1 and 2 for the inspector: headers, checksums, and the records that are not
// compressed. It refuses what kwire's read_batches() does, at the same batch and for the same reason.
(function () {
  "use strict";
  const {WireError, hex} = window.kafkaWire;
  const CODECS = ["none", "gzip", "snappy", "lz4", "zstd"], HEADER = 61, MIN_RECORD = 7, MAX_LENGTH = 0x7fffffff - 12;
  const SMALLEST = [26, 34, HEADER], TYPES = {8: "BigInt64", 4: "Int32", 2: "Int16", 1: "Int8"};

  function crcTable(polynomial) {
    return Uint32Array.from({length: 256}, (_, byte) => {
      let value = byte;
      for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ polynomial : value >>> 1;
      return value >>> 0;
    });
  }
  const CRC32C = crcTable(0x82f63b78), CRC32 = crcTable(0xedb88320);
  function crc(table, bytes) {
    let value = 0xffffffff;
    for (const byte of bytes) value = table[(value ^ byte) & 255] ^ (value >>> 8);
    return (value ^ 0xffffffff) >>> 0;
  }

  class Batches {
    constructor(bytes) {
      Object.assign(this, {bytes, at: 0, start: 0, base: -1n, rows: [], batches: []});
      this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    // offset: the byte to show; where: the byte of the batch that kwire names, if it does
    fail(reason, offset, where) {
      const said = where === undefined ? reason : `${reason}, at byte ${where - this.start} of the batch`;
      const error = new WireError(said, offset);
      error.batch = this.start;
      Object.defineProperty(error, "text", {value: `batch at byte ${this.start}, base offset ${this.base}: ${said}`});
      return error;
    }
    row(size, name, type, value, depth = 1) {
      this.rows.push({at: this.at, size, depth, path: name, name, type, value: String(value)});
      this.at += size;
    }
    number(size, name, depth) {
      const value = this.view[`get${TYPES[size]}`](this.at);
      this.row(size, name, `int${8 * size}`, value, depth);
      return value;
    }
    // the next batch; false: the input ends inside it
    batch() {
      const {view, start} = this, left = this.bytes.length - start;
      this.base = -1n;
      if (left < 12) return false;
      this.base = view.getBigInt64(start);
      const length = view.getInt32(start + 8);
      if (length < 14) throw this.fail("invalid batch length", start + 8);
      if (left < 17) return false;
      if (length > MAX_LENGTH) throw this.fail("invalid batch length", start + 8);
      const size = length + 12, magic = view.getInt8(start + 16), end = start + size;
      if (magic < 0 || magic > 2) throw this.fail("magic is not 0, 1 or 2", start + 16);
      if (size > left) return false;
      if (size < SMALLEST[magic]) throw this.fail("batch is smaller than its header", start + 8);
      this.row(0, `batch ${this.batches.length}, magic ${magic}`, "batch", `${size} bytes`, 0);
      this.number(8, magic === 2 ? "baseOffset" : "offset");
      this.number(4, magic === 2 ? "batchLength" : "messageSize");
      if (magic === 2) this.newBatch(end);
      else this.oldEntry(end, magic);
      this.start = end;
      return true;
    }
    checksum(table, from, end) {
      const stored = this.view.getUint32(this.at), found = crc(table, this.bytes.subarray(from, end));
      if (stored !== found) {
        this.row(4, "crc", "uint32", `${stored}, should be ${found}`);
        throw this.fail("checksum does not match", this.at - 4);
      }
      this.row(4, "crc", "uint32", `${stored}, matches`);
    }
    attributes(size) {
      const value = size === 2 ? this.view.getUint16(this.at) : this.view.getUint8(this.at), codec = value & 7;
      const bits = [`compression ${CODECS[codec] ?? codec}`, value & 8 ? "log append time" : "create time"];
      if (size === 2) bits.push(...[[16, "transactional"], [32, "control"], [64, "delete horizon"]].filter(([bit]) => value & bit).map(([, name]) => name));
      this.row(size, "attributes", `int${8 * size}`, `${value}: ${bits.join(", ")}`);
      return [codec, value];
    }
    newBatch(end) {
      const batch = new Map([["baseOffset", this.base]]), keep = (size, name) => batch.set(name, this.number(size, name)).get(name);
      keep(4, "partitionLeaderEpoch");
      this.number(1, "magic");
      this.checksum(CRC32C, this.at + 4, end);
      const [codec, attributes] = this.attributes(2);
      batch.set("attributes", attributes);
      keep(4, "lastOffsetDelta");
      const stamp = keep(8, "baseTimestamp"), last = keep(8, "maxTimestamp");
      keep(8, "producerId");
      keep(2, "producerEpoch");
      keep(4, "baseSequence");
      const count = keep(4, "recordsCount");
      this.batches.push(batch);
      if (codec) return this.packed(end, codec);
      if (count < 0) throw this.fail("negative number of records", this.at - 4);
      if (count > Math.floor((end - this.at) / MIN_RECORD)) throw this.fail("number of records exceeds what the bytes can hold", this.at - 4);
      const records = [];
      for (let index = 0; index < count; index++) records.push(this.record(index, end, stamp, attributes & 8 ? last : null));
      if (count && this.at !== end) throw this.fail("bytes remaining after the last record", this.at, this.at);
      if (this.at !== end) this.row(end - this.at, "unread", "bytes", `${end - this.at} bytes`);
      batch.set("records", records);
    }
    packed(end, codec) {
      if (codec > 4) throw this.fail("unknown compression codec", this.start + 21);
      this.row(end - this.at, "records", "bytes", `${end - this.at} bytes compressed with ${CODECS[codec]}; kwire log show reads them`);
    }
    varint(end, most = 5) {  // zigzag, as BigInt; null: it does not end, or not in time
      let value = 0n;
      for (let index = 0; index < most; index++) {
        if (this.cursor >= end) return null;
        const byte = this.bytes[this.cursor++];
        value |= BigInt(byte & 0x7f) << BigInt(7 * index);
        if (byte < 0x80) {
          const bits = most === 5 ? 32 : 64;
          value = BigInt.asUintN(bits, value);
          return BigInt.asIntN(bits, (value >> 1n) ^ -(value & 1n));
        }
      }
      return null;
    }
    record(index, end, stamp, appended) {
      const from = this.at, bad = reason => this.fail(reason, from, from), first = this.rows.length;
      const needed = (limit, reason, most) => {
        const value = this.varint(limit, most);
        if (value === null) throw bad(reason);
        return value;
      };
      const put = (name, type, value) => this.row(this.cursor - this.at, name, type, value, 2);
      this.cursor = this.at;
      try {
        const size = Number(needed(end, "record length is negative or past the end of the batch"));
        const stop = this.cursor + size, fields = "record fields do not fill the record's length";
        if (size < 0 || stop > end) throw bad("record length is negative or past the end of the batch");
        put(`record ${index}`, "varint", `${size} bytes`);
        if (this.cursor >= stop) throw bad(fields);
        this.cursor++;
        put("attributes", "int8", this.view.getInt8(this.at));
        const time = needed(stop, fields, 10);
        put("timestampDelta", "varlong", time);
        const delta = needed(stop, fields);
        put("offsetDelta", "varint", delta);
        const part = (name, reason, limit) => {
          const length = Number(needed(stop, reason));
          if (length > stop - this.cursor) throw bad(reason);
          const bytes = length < 0 ? null : this.bytes.subarray(this.cursor, this.cursor + length);
          this.cursor += Math.max(0, length);
          put(name, "bytes", shown(bytes));
          return bytes;
        };
        const key = part("key", fields), value = part("value", fields), count = Number(needed(stop, fields)), headers = [];
        put("headers", "varint", count);
        if (count < 0 || count > stop - this.cursor) throw bad("record headers do not fit in the record");
        for (let header = 0; header < count; header++) {
          const at = this.cursor, length = needed(stop, "record headers do not fit in the record");
          if (length < 0n) throw bad("negative length of a header key");
          this.cursor = at;
          const name = part("headerKey", "record headers do not fit in the record");
          headers.push([name, part("headerValue", "record headers do not fit in the record")]);
        }
        if (this.cursor !== stop) throw bad(fields);
        return new Map([["offset", BigInt.asIntN(64, this.base + delta)], ["timestamp", appended ?? BigInt.asIntN(64, stamp + time)],
          ["key", text(key)], ["value", text(value)], ["headers", headers.map(([name, one]) => [text(name), text(one)])]]);
      } catch (error) {
        this.at = from;
        this.rows.length = first;
        throw error;
      }
    }
    oldEntry(end, magic) {
      this.checksum(CRC32, this.at + 4, end);
      this.number(1, "magic");
      const [codec, attributes] = this.attributes(1), stamp = magic ? this.number(8, "timestamp") : -1n;
      const batch = new Map([["baseOffset", this.base], ["attributes", attributes]]), parts = [];
      this.batches.push(batch);
      if (codec > 4) throw this.fail("unknown compression codec", this.at - 1);
      if (codec === 4) throw this.fail("magic 0 and 1 do not support zstd", this.at - 1);
      for (const name of ["key", "value"]) {
        const bad = () => this.fail("key or value extends past the end of its entry", this.at, codec ? undefined : this.start);
        if (end - this.at < 4) throw bad();
        const size = this.view.getInt32(this.at);
        if (size > end - this.at - 4) throw bad();
        this.row(4, `${name}Size`, "int32", size);
        parts.push(size < 0 ? null : this.bytes.subarray(this.at, this.at + size));
        const said = codec && name === "value" && size >= 0 ? `${size} bytes compressed with ${CODECS[codec]}; kwire log show reads them` : shown(parts[parts.length - 1]);
        if (size > 0) this.row(size, name, "bytes", said);
      }
      if (codec && parts[1] === null) throw this.fail("compressed wrapper without a value", this.at - 4);
      if (this.at < end) this.row(end - this.at, "unread", "bytes", `${end - this.at} bytes`);
      if (!codec) batch.set("records", [new Map([["offset", this.base], ["timestamp", stamp], ["key", text(parts[0])], ["value", text(parts[1])], ["headers", []]])]);
    }
  }

  const text = bytes => bytes === null ? null : hex(bytes);
  const utf8 = new TextDecoder("utf-8", {fatal: true});
  function shown(bytes) {
    if (bytes === null) return "null";
    const some = bytes.subarray(0, 200);
    try {
      const plain = utf8.decode(some);
      if (bytes.length && !/[\u0000-\u0008\u000e-\u001f\u007f]/.test(plain)) return `${bytes.length} bytes: ${JSON.stringify(plain)}${bytes.length > some.length ? "…" : ""}`;
    } catch (error) { /* no text: shown as hex */ }
    return `${bytes.length} bytes${bytes.length ? ": " : ""}${hex(bytes.subarray(0, 32))}${bytes.length > 32 ? "…" : ""}`;
  }

  // As kafkaWire.inspect. message: the batches; keys, values and headers of records in hex. A partial last batch is
  // no error, as in read_batches(): tail is its [byte, bytes left].
  function inspect(bytes) {
    const reader = new Batches(bytes), result = {name: "", version: 0, header: null, message: null, rows: reader.rows, error: null, tail: null};
    try {
      while (reader.start < bytes.length) {
        reader.at = reader.start;
        if (!reader.batch()) {
          result.tail = [reader.start, bytes.length - reader.start];
          reader.row(bytes.length - reader.start, "partial batch", "bytes", `the input ends inside the batch: ${bytes.length - reader.start} bytes`, 0);
          break;
        }
      }
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      result.error = error;
    }
    result.message = reader.batches;
    result.end = reader.at;
    const records = reader.batches.reduce((sum, batch) => sum + (batch.get("records") || []).length, 0);
    result.summary = `${reader.batches.length} batch${reader.batches.length === 1 ? "" : "es"}, ${records} records that are not compressed${result.tail ? ", and a partial batch" : ""}`;
    return result;
  }

  window.kafkaRecords = {inspect};
})();
