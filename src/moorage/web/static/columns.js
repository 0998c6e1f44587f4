/**
 * A fleet as tables of columns: decode what the server sends, apply its changes, answer lookups.
 *
 * A name is an index into `strings`; -1 is none. Rows never move: what vanishes leaves a vacant row.
 */

const TABLES = {
  nodes: ["name", "zone", "state", "devices"],
  devices: [
    ...["node", "driver", "pool", "name", "numa", "root"],
    ...["state", "used", "parent", "claims"],
  ],
  holdings: ["device", "claim", "share"],
  claims: ["namespace", "name", "created", "pod"],
  pods: ["namespace", "name", "node", "state", "created", "group"],
};

// What the page calls the states of the protocol, in its order.
export const DEVICE_STATES = [
  ...["free", "allocated", "partly allocated", "blocked by counters"],
  ...["tainted", "not usable", "missing", "not known"],
];
export const NODE_STATES = ["ready", "not ready", "cordoned", "no Node object"];
export const POD_STATES = ["pending", "scheduled", "running", "finished"];

/** Return the numbers of a column, whichever of its four forms it has. */
export function decodeColumn(column, wide = false) {
  const Numbers = wide ? Float64Array : Int32Array;
  if (Array.isArray(column)) return Numbers.from(column);
  if (column?.rle) return decodeRuns(column.rle, Numbers);
  if (column?.steps) return decodeRuns(column.steps, Numbers, true);
  let sum = 0;
  return Numbers.from(column?.delta ?? [], (difference) => (sum += difference));
}

function decodeRuns(runs, Numbers, areSteps = false) {
  let length = 0;
  for (let i = 1; i < runs.length; i += 2) length += runs[i];
  const decoded = new Numbers(length);
  for (let i = 0, at = 0, value = 0; i < runs.length; i += 2) {
    value = areSteps ? value + runs[i] : runs[i];
    decoded.fill(value, at, at + runs[i + 1]);
    at += runs[i + 1];
  }
  return decoded;
}

export class Fleet {
  constructor(answer) {
    this.revision = answer.revision;
    this.time = answer.time;
    this.strings = answer.strings;
    this.groups = answer.groups ?? [];
    this.cache = new Map();
    for (const [table, names] of Object.entries(TABLES)) {
      this[table] = {};
      for (const name of names) {
        this[table][name] = decodeColumn(answer[table]?.[name] ?? [], name === "created");
      }
    }
  }

  /** Return a copy that can be changed without changing this. */
  clone() {
    const copy = Object.assign(Object.create(Fleet.prototype), this);
    copy.cache = new Map();
    copy.strings = [...this.strings];
    for (const [table, names] of Object.entries(TABLES)) {
      copy[table] = {};
      for (const name of names) copy[table][name] = this[table][name].slice();
    }
    return copy;
  }

  /** Apply an event of the server; return whether there are other rows of nodes or devices. */
  apply(change) {
    this.revision = change.revision ?? this.revision;
    this.time = change.time ?? this.time;
    for (const text of change.strings ?? []) this.strings.push(text);
    if (change.groups) this.groups = change.groups;
    for (const [table, columns] of Object.entries(change.set ?? {})) {
      for (const [name, cells] of Object.entries(columns)) {
        const column = this[table]?.[name];
        if (column) for (const [row, value] of cells) column[row] = value;
      }
    }
    for (const [table, columns] of Object.entries(change.append ?? {})) this.append(table, columns);
    this.cache.clear();
    const isMoved = ["name", "node", "numa", "parent"].some((name) => change.set?.devices?.[name]);
    return isMoved || Boolean(change.append?.nodes || change.append?.devices);
  }

  append(table, columns) {
    for (const [name, added] of Object.entries(columns)) {
      const old = this[table]?.[name];
      if (!old) continue;
      const more = decodeColumn(added, name === "created");
      const grown = new old.constructor(old.length + more.length);
      grown.set(old);
      grown.set(more, old.length);
      this[table][name] = grown;
    }
  }

  get deviceCount() {
    return this.devices.name.length;
  }

  /** Compute something once until the fleet changes. */
  once(key, compute) {
    if (!this.cache.has(key)) this.cache.set(key, compute());
    return this.cache.get(key);
  }

  // --- names ------------------------------------------------------------------------------

  text(column, row) {
    return row < 0 ? "" : (this.strings[column[row]] ?? "");
  }

  deviceName(row) {
    return this.text(this.devices.name, row);
  }

  deviceId(row) {
    const { driver, pool, name } = this.devices;
    return `${this.text(driver, row)}/${this.text(pool, row)}/${this.text(name, row)}`;
  }

  nodeName(row) {
    return this.text(this.nodes.name, row);
  }

  claimId(row) {
    return row < 0 ? "" : `${this.text(this.claims.namespace, row)}/${this.text(this.claims.name, row)}`;
  }

  podId(row) {
    return row < 0 ? "" : `${this.text(this.pods.namespace, row)}/${this.text(this.pods.name, row)}`;
  }

  // --- lookups: -1 where there is none ----------------------------------------------------

  numberOf(text) {
    const numbers = this.once("strings", () => new Map(this.strings.map((each, i) => [each, i])));
    return numbers.get(text) ?? -1;
  }

  findRow(columns, texts) {
    const wanted = texts.map((text) => this.numberOf(text));
    const first = columns[0];
    for (let row = 0; row < first.length; row++) {
      if (first[row] === wanted[0] && columns.every((column, i) => column[row] === wanted[i])) return row;
    }
    return -1;
  }

  findNode(name) {
    return name ? this.findRow([this.nodes.name], [name]) : -1;
  }

  findDevice(id) {
    const [driver, pool, ...name] = id.split("/");
    const { devices } = this;
    return this.findRow([devices.name, devices.pool, devices.driver], [name.join("/"), pool, driver]);
  }

  findClaim(id) {
    const [namespace, name] = id.split("/");
    return this.findRow([this.claims.name, this.claims.namespace], [name ?? "", namespace]);
  }

  findPod(id) {
    const [namespace, name] = id.split("/");
    return this.findRow([this.pods.name, this.pods.namespace], [name ?? "", namespace]);
  }

  /** Return [starts, rows]: the rows of one table in order of what a column of it refers to. */
  rowsBy(key, column, count) {
    return this.once(key, () => {
      const starts = new Int32Array(count + 1);
      for (const target of column) if (target >= 0) starts[target + 1]++;
      for (let i = 0; i < count; i++) starts[i + 1] += starts[i];
      const rows = new Int32Array(starts[count]);
      const next = starts.slice();
      column.forEach((target, row) => {
        if (target >= 0) rows[next[target]++] = row;
      });
      return [starts, rows];
    });
  }

  related(key, column, count, target) {
    if (target < 0) return [];
    const [starts, rows] = this.rowsBy(key, column, count);
    return [...rows.subarray(starts[target], starts[target + 1])];
  }

  /** Return the rows of holdings of a device. */
  holdingsOf(device) {
    return this.related("holdings of devices", this.holdings.device, this.deviceCount, device);
  }

  claimsOf(device) {
    return this.holdingsOf(device).map((row) => this.holdings.claim[row]);
  }

  /** Return the first claim that holds a device. */
  firstClaim(device) {
    const firsts = this.once("first claims", () => {
      const found = new Int32Array(this.deviceCount).fill(-1);
      const { device: devices, claim } = this.holdings;
      for (let row = devices.length - 1; row >= 0; row--) {
        if (devices[row] >= 0) found[devices[row]] = claim[row];
      }
      return found;
    });
    return device < 0 ? -1 : firsts[device];
  }

  devicesOfClaim(claim) {
    const { holdings, claims } = this;
    const rows = this.related("holdings of claims", holdings.claim, claims.name.length, claim);
    return rows.map((row) => holdings.device[row]).filter((device) => device >= 0);
  }

  claimsOfPod(pod) {
    return this.related("claims of pods", this.claims.pod, this.pods.name.length, pod);
  }

  devicesOfPod(pod) {
    return this.claimsOfPod(pod).flatMap((claim) => this.devicesOfClaim(claim));
  }

  devicesOfNode(node) {
    return this.related("devices of nodes", this.devices.node, this.nodes.name.length, node);
  }

  podsOfNode(node) {
    return this.related("pods of nodes", this.pods.node, this.nodes.name.length, node);
  }

  podsOfGroup(group) {
    return this.related("pods of groups", this.pods.group, this.groups.length, group);
  }

  partsOf(device) {
    return this.related("parts", this.devices.parent, this.deviceCount, device);
  }
}
