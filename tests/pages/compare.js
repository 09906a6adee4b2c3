// Compares cases [kind, name, version, lenient, hex, expected] with what the inspector reads; returns those that differ.
// expected: JSON text, or [byte, reason] of an error. The rows must cover the bytes read without a gap.
window.different = cases => {
  const wire = window.kafkaWire, found = [];
  const bytes = text => Uint8Array.from({length: text.length / 2}, (_, at) => parseInt(text.substr(2 * at, 2), 16));
  const json = value => wire.toJson(value, {sorted: true, float: one => `"float ${one.bits}"`});
  for (const [kind, name, version, lenient, hex, expected] of cases) {
    const data = bytes(hex), got = wire.inspect(kind, data, {name, version, lenient});
    const whole = kind === "message" ? got.message : new Map([
      ["name", got.name], ["version", got.version], ["header", got.header], ["message", got.message]]);
    const is = got.error ? JSON.stringify([got.error.offset, got.error.reason]) : json(whole);
    let end = 0, covered = true;
    for (const row of got.rows.filter(one => one.size)) {
      covered = covered && row.at === end;
      end = row.at + row.size;
    }
    covered = covered && (got.error || got.more ? end <= data.length : end === got.end);
    if (is !== (typeof expected === "string" ? expected : JSON.stringify(expected)) || !covered)
      found.push([kind, name, version, lenient, hex.slice(0, 400), is.slice(0, 400), covered]);
  }
  return found;
};
0;
