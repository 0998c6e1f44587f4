/**
 * Where devices are: a tree of cards (nodes), sections (NUMA nodes), cells (devices), parts (partitions).
 *
 * The unit is the pitch of cells; the same layout serves every zoom level, so that nothing moves
 * while zooming. Every step is a pass over rows: O(devices).
 */

export const CELL = 0.9; // the size of a cell; the rest is the gap to the next one
const PAD = 0.16;
const HEAD = 0.56;
const SECTION_GAP = 0.26;
const SPACING = 0.34; // between cards
const SCALE_MAX = 112; // pixels a unit when a small fleet is fitted
// Every screen has the same layout, so that a link shows the same place everywhere.
const [WIDTH, HEIGHT] = [1000, 800];

/** Return the layout of a fleet. */
export function layOut(fleet) {
  const cards = groupIntoCards(fleet);
  const cells = {
    x: new Float32Array(fleet.deviceCount),
    y: new Float32Array(fleet.deviceCount),
    size: new Float32Array(fleet.deviceCount).fill(CELL),
    height: new Float32Array(fleet.deviceCount).fill(CELL),
    card: new Int32Array(fleet.deviceCount).fill(-1),
  };
  cards.forEach((card, index) => fillCard(fleet, card, index, cells));
  const shelves = packToFit(cards, WIDTH, HEIGHT);
  for (const card of cards) {
    for (const device of card.devices) {
      cells.x[device] += card.x;
      cells.y[device] += card.y;
      cells.card[device] = card.index;
    }
    for (const section of card.sections) {
      section.x += card.x;
      section.y += card.y;
    }
  }
  const partStarts = placeParts(fleet, cells);
  const last = shelves.at(-1);
  const size = {
    width: Math.max(1, ...shelves.map((shelf) => shelf.width)),
    height: last ? last.y + last.height : 1,
  };
  return { cards, cells, shelves, parts: partStarts, ...size };
}

// --- cards ----------------------------------------------------------------------------------

/** One card for each node, then one for each pool of devices that several nodes reach. */
function groupIntoCards(fleet) {
  const { node, pool, parent } = fleet.devices;
  const cards = Array.from(fleet.nodes.name, (_, row) => newCard(row, fleet.nodeName(row)));
  const ofPools = new Map();
  for (let device = 0; device < fleet.deviceCount; device++) {
    if (parent[device] >= 0) continue;
    let card = cards[node[device]];
    if (!card) {
      card = ofPools.get(pool[device]);
      if (!card) {
        card = newCard(-1, fleet.text(fleet.devices.pool, device));
        ofPools.set(pool[device], card);
      }
    }
    card.devices.push(device);
  }
  const all = [...cards, ...ofPools.values()];
  all.forEach((card, index) => (card.index = index));
  return all;
}

function newCard(node, title) {
  return { node, title, devices: [], sections: [], x: 0, y: 0, width: 0, height: 0, index: 0 };
}

/** Place the cells of a card relative to its corner: a section for each NUMA node. */
function fillCard(fleet, card, index, cells) {
  const { numa } = fleet.devices;
  const counts = new Map();
  for (const device of card.devices) counts.set(numa[device], (counts.get(numa[device]) ?? 0) + 1);
  const columns = columnsFor(Math.max(0, ...counts.values()));
  let y = HEAD;
  let section = null;
  for (const device of card.devices) {
    if (!section || section.numa !== numa[device]) {
      if (section) y = section.y + section.height + SECTION_GAP;
      section = { numa: numa[device], x: PAD, y, width: columns, height: 0, count: 0 };
      card.sections.push(section);
    }
    const row = Math.floor(section.count / columns);
    cells.x[device] = PAD + (section.count % columns) + (1 - CELL) / 2;
    cells.y[device] = section.y + row + (1 - CELL) / 2;
    section.count++;
    section.height = row + 1;
  }
  card.width = columns + 2 * PAD;
  card.height = (section ? section.y + section.height : HEAD + 0.5) + PAD;
}

/** Return how many cells a row has: rows of equal length, about 2.5 times as many as rows. */
function columnsFor(count) {
  if (count <= 8) return 4;
  return Math.ceil(count / Math.max(2, Math.floor(Math.sqrt(count / 2.5))));
}

/** Place partitions inside the cell of their device; return [first part, next part] links. */
function placeParts(fleet, cells) {
  const { parent } = fleet.devices;
  const counts = new Map();
  for (const full of parent) if (full >= 0) counts.set(full, (counts.get(full) ?? 0) + 1);
  const placed = new Map();
  for (let device = 0; device < parent.length; device++) {
    const full = parent[device];
    if (full < 0) continue;
    const count = counts.get(full);
    const columns = Math.ceil(Math.sqrt(count * 1.6));
    const rows = Math.ceil(count / columns);
    const at = placed.get(full) ?? 0;
    placed.set(full, at + 1);
    const [width, height] = [(CELL * 0.88) / columns, (CELL * 0.5) / rows];
    cells.x[device] = cells.x[full] + CELL * 0.06 + (at % columns) * width;
    cells.y[device] = cells.y[full] + CELL * 0.44 + Math.floor(at / columns) * height;
    cells.size[device] = width * 0.88;
    cells.height[device] = height * 0.88;
    cells.card[device] = cells.card[full];
  }
  return counts;
}

// --- shelves --------------------------------------------------------------------------------

/** Put the cards on shelves so that all are as large as the viewport allows; return the shelves. */
function packToFit(cards, width, height) {
  const area = cards.reduce((sum, each) => sum + (each.width + SPACING) * (each.height + SPACING), 0);
  let scale = Math.min(SCALE_MAX, Math.ceil(Math.sqrt((width * height) / Math.max(1, area))) + 1);
  for (; scale > 1; scale -= scale > 24 ? 4 : scale > 4 ? 1 : 0.5) {
    if (packedHeight(cards, width / scale) * scale <= height) break;
  }
  return pack(cards, width / Math.max(1, scale));
}

function packedHeight(cards, width) {
  let [x, y, shelf] = [0, 0, 0];
  for (const card of cards) {
    if (x && x + card.width > width) {
      y += shelf + SPACING;
      x = shelf = 0;
    }
    if (card.width > width) return Infinity;
    x += card.width + SPACING;
    shelf = Math.max(shelf, card.height);
  }
  return y + shelf;
}

function pack(cards, width) {
  const shelves = [];
  let shelf = null;
  cards.forEach((card, index) => {
    if (!shelf || (shelf.width && shelf.width + SPACING + card.width > width)) {
      const y = shelf ? shelf.y + shelf.height + SPACING : 0;
      shelf = { y, height: 0, width: 0, first: index, end: index };
      shelves.push(shelf);
    }
    card.x = shelf.width ? shelf.width + SPACING : 0;
    card.y = shelf.y;
    shelf.width = card.x + card.width;
    shelf.height = Math.max(shelf.height, card.height);
    shelf.end = index + 1;
  });
  return shelves;
}

// --- the view ---------------------------------------------------------------------------------

/** Return the camera that shows the whole layout, with a margin in pixels. */
export function fitted(layout, width, height, margin = 16) {
  const [w, h] = [width - 2 * margin, height - 2 * margin];
  let scale = Math.min(SCALE_MAX, w / layout.width, h / layout.height);
  if (scale > 2 && scale < 12) scale = Math.floor(scale * 2) / 2; // even cells
  // Few nodes begin at the corner, many are centred.
  const isSmall = scale === SCALE_MAX;
  const x = isSmall ? -margin / scale : (layout.width - width / scale) / 2;
  return { x, y: -margin / scale, scale };
}

/** Call back with every card in the view. */
export function cardsInView(layout, camera, width, height, visit) {
  const [right, bottom] = [camera.x + width / camera.scale, camera.y + height / camera.scale];
  for (const shelf of layout.shelves) {
    if (shelf.y + shelf.height < camera.y) continue;
    if (shelf.y > bottom) break;
    for (let i = shelf.first; i < shelf.end; i++) {
      const card = layout.cards[i];
      if (card.x > right) break;
      if (card.x + card.width >= camera.x && card.y + card.height >= camera.y) visit(card);
    }
  }
}

/** Return what is at a place of the layout: {device} or {card} or null. */
export function hit(layout, fleet, x, y) {
  const shelf = layout.shelves.find((each) => y >= each.y && y < each.y + each.height);
  if (!shelf) return null;
  for (let i = shelf.first; i < shelf.end; i++) {
    const card = layout.cards[i];
    if (x < card.x || x >= card.x + card.width || y >= card.y + card.height) continue;
    const device = card.devices.find((each) => isInside(layout.cells, each, x, y));
    if (device === undefined) return { card };
    if (!layout.parts.has(device)) return { card, device };
    const part = fleet.partsOf(device).find((each) => isInside(layout.cells, each, x, y));
    return { card, device: part ?? device };
  }
  return null;
}

function isInside(cells, device, x, y) {
  const [left, top] = [cells.x[device], cells.y[device]];
  return x >= left && x < left + cells.size[device] && y >= top && y < top + cells.height[device];
}

/** Return the nearest cell in a direction (dx, dy of -1, 0, 1), or the same if there is none. */
export function neighbour(layout, fleet, device, dx, dy) {
  const { x, y, card } = layout.cells;
  let [best, distance] = [device, Infinity];
  for (let other = 0; other < x.length; other++) {
    if (other === device || card[other] < 0 || fleet.devices.parent[other] >= 0) continue;
    const [right, down] = [x[other] - x[device], y[other] - y[device]];
    const along = right * dx + down * dy;
    const aside = Math.abs(right * dy) + Math.abs(down * dx);
    if (along < 0.5) continue;
    const score = along + aside * 3;
    if (score < distance) [best, distance] = [other, score];
  }
  return best;
}
