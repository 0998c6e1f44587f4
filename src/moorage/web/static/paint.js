/**
 * Draw the fleet: pixels into an image while cells are small, shapes and text once they are large.
 *
 * The image costs a few milliseconds for any number of devices. Shapes are drawn only for what is
 * in the view, which is at most a few thousand cells once they are large enough for shapes.
 */
import { cardsInView, CELL } from "./layout.js";
import { CROSSES, DOTS, HALF, OUTLINE, PALETTES, STRIPES, inkOn, packed } from "./colours.js";
import { NODE_STATES } from "./columns.js";

const SHAPES_FROM = 13; // device pixels a cell
const PARTS_FROM = 20; // pixels a cell
const FONT = "system-ui, sans-serif";

// What the last pictures cost: tests and benchmarks read it.
export const work = { pictures: 0, cells: 0, texts: 0, ms: 0, level: "" };

/**
 * Draw one picture.
 *
 * scene: {fleet, layout, kinds, legend, theme, camera, width, height, ratio, marks, dimmed}; marks
 * are {selected, hovered, linked, card}, dimmed says which devices are not meant.
 */
export function drawScene(canvas, scene) {
  const started = performance.now();
  const context = canvas.getContext("2d", { alpha: false });
  work.cells = work.texts = 0;
  if (scene.camera.scale * scene.ratio < SHAPES_FROM) {
    work.level = "pixels";
    drawPixels(context, scene);
  } else {
    work.level = "shapes";
    drawShapes(context, scene);
  }
  drawMarks(context, scene);
  work.pictures++;
  work.ms = performance.now() - started;
}

// --- far: pixels ------------------------------------------------------------------------------

let image = null; // kept between pictures: a new one for each is most of the work

function drawPixels(context, scene) {
  const { fleet, layout, camera, ratio, kinds } = scene;
  const [width, height] = [context.canvas.width, context.canvas.height];
  if (image?.width !== width || image?.height !== height) image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const palette = PALETTES[scene.theme];
  pixels.fill(packed(palette.background));
  const looks = scene.legend.map((each) => ({ ...each, ink: packed(each.colour) }));
  const [card, ground, taken] = [palette.card, palette.free, palette.taken].map(packed);
  const faint = packed(palette.far);
  const scale = camera.scale * ratio;
  const toX = (x) => Math.round((x - camera.x) * scale);
  const toY = (y) => Math.round((y - camera.y) * scale);
  const { x: xs, y: ys } = layout.cells;
  const size = scale >= 3 ? CELL * scale : scale;
  const painter = { pixels, width, height };
  cardsInView(layout, camera, scene.width, scene.height, (each) => {
    fillPixels(painter, toX(each.x), toY(each.y), toX(each.x + each.width), toY(each.y + each.height), card);
    for (const device of each.devices) {
      const look = looks[kinds[device]];
      const [left, top] = [toX(xs[device]), toY(ys[device])];
      const [right, bottom] = [Math.max(left + 1, Math.round(left + size)), Math.max(top + 1, Math.round(top + size))];
      work.cells++;
      if (scene.dimmed?.[device]) fillPixels(painter, left, top, right, bottom, faint);
      else if (size < 5) fillPixels(painter, left, top, right, bottom, look.ink);
      else patternPixels(painter, left, top, right, bottom, look, card, ground, taken, fleet.devices.used[device]);
    }
  });
  context.putImageData(image, 0, 0);
}

function fillPixels({ pixels, width, height }, left, top, right, bottom, ink) {
  const [x0, x1] = [Math.max(0, left), Math.min(width, right)];
  if (x0 >= x1) return;
  for (let y = Math.max(0, top); y < Math.min(height, bottom); y++) {
    const row = y * width;
    if (x1 - x0 > 16) pixels.fill(ink, row + x0, row + x1);
    else for (let x = row + x0; x < row + x1; x++) pixels[x] = ink;
  }
}

function patternPixels(painter, left, top, right, bottom, look, card, ground, taken, used) {
  if (look.pattern === HALF) {
    const level = Math.round(bottom - ((bottom - top) * Math.max(used, 150)) / 1000);
    fillPixels(painter, left, top, right, level, look.ink);
    fillPixels(painter, left, level, right, bottom, taken);
    return;
  }
  fillPixels(painter, left, top, right, bottom, look.ink);
  const { pixels, width, height } = painter;
  if (look.pattern === OUTLINE) {
    return fillPixels(painter, left + 1, top + 1, right - 1, bottom - 1, card);
  }
  if (!look.pattern) return;
  for (let y = Math.max(0, top); y < Math.min(height, bottom); y++) {
    for (let x = Math.max(0, left); x < Math.min(width, right); x++) {
      if (isInk(look.pattern, x - left, y - top)) pixels[y * width + x] = card;
    }
  }
}

function isInk(pattern, x, y) {
  if (pattern === STRIPES) return (x + y) % 4 === 0;
  if (pattern === CROSSES) return (x + y) % 5 === 0 || (x - y + 500) % 5 === 0;
  return pattern === DOTS && x % 3 === 1 && y % 3 === 1;
}

// --- near: shapes -----------------------------------------------------------------------------

function drawShapes(context, scene) {
  const { camera, ratio, layout } = scene;
  const palette = PALETTES[scene.theme];
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = palette.background;
  context.fillRect(0, 0, context.canvas.width, context.canvas.height);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.textBaseline = "alphabetic";
  const brush = { context, palette, scene, scale: camera.scale, patterns: patternsOf(context, palette) };
  cardsInView(layout, camera, scene.width, scene.height, (card) => drawCard(brush, card));
  context.setTransform(1, 0, 0, 1, 0, 0);
}

function drawCard(brush, card) {
  const { context, palette, scene, scale } = brush;
  const [x, y] = place(brush, card.x, card.y);
  const [width, height] = [card.width * scale, card.height * scale];
  const isMarked = scene.marks.card === card.index;
  context.fillStyle = palette.card;
  context.strokeStyle = isMarked ? palette.accent : palette.line;
  context.lineWidth = isMarked ? 2 : 1;
  context.beginPath();
  context.roundRect(Math.round(x) + 0.5, Math.round(y) + 0.5, width - 1, height - 1, Math.min(8, scale / 5));
  context.fill();
  context.stroke();
  drawHead(brush, card, x, y, width);
  for (const section of card.sections) drawSection(brush, section, card);
  if (scale >= 44) drawRoots(brush, card);
  for (const device of card.devices) drawCell(brush, device);
}

function drawHead({ context, palette, scene, scale }, card, x, y, width) {
  const size = Math.min(14, scale * 0.4);
  if (size < 7) return;
  const pad = scale * 0.2;
  const base = y + scale * 0.2 + size * 0.75;
  context.fillStyle = palette.text;
  context.font = `600 ${size}px ${FONT}`;
  const { fleet } = scene;
  const state = card.node < 0 ? "several nodes" : fleet.nodes.state[card.node] ? NODE_STATES[fleet.nodes.state[card.node]] : "";
  const free = card.devices.filter((device) => fleet.devices.state[device] === 0).length;
  const summary = [state, `${free} of ${card.devices.length} free`].filter(Boolean).join(" · ");
  const end = write(context, card.title || "?", x + pad, base, width - 2 * pad);
  const noteSize = Math.min(12, size);
  context.font = `${noteSize}px ${FONT}`;
  context.fillStyle = palette.quiet;
  const wide = context.measureText(summary).width;
  if (size >= 9 && end + 12 + wide < x + width - pad) {
    context.fillText(summary, x + width - pad - wide, base);
    work.texts++;
  }
  if (!card.devices.length && scale > 20) write(context, "no devices", x + pad, base + noteSize * 1.5, width);
}

function drawSection(brush, section, card) {
  const { context, palette, scale } = brush;
  if (scale < 44 || section.numa < 0) return;
  const [x, y] = place(brush, section.x, section.y);
  context.strokeStyle = palette.line;
  context.lineWidth = 1;
  if (section !== card.sections[0]) {
    context.beginPath();
    context.moveTo(x, Math.round(y - scale * 0.14) + 0.5);
    context.lineTo(x + section.width * scale, Math.round(y - scale * 0.14) + 0.5);
    context.stroke();
  }
  if (scale < 60) return;
  const size = Math.min(10, scale * 0.12);
  context.font = `${size}px ${FONT}`;
  const label = `NUMA node ${section.numa}`;
  const wide = context.measureText(label).width;
  context.fillStyle = palette.card;
  const labelY = section === card.sections[0] ? y - scale * 0.02 : y - scale * 0.14 + size * 0.35;
  context.fillRect(x + scale * 0.05 - 2, labelY - size, wide + 4, size * 1.3);
  context.fillStyle = palette.quiet;
  context.fillText(label, x + scale * 0.05, labelY);
  work.texts++;
}

/** Underline the cells that share a PCIe root, row by row, with its name where there is room. */
function drawRoots({ context, palette, scene, scale }, card) {
  const { root } = scene.fleet.devices;
  const { x, y } = scene.layout.cells;
  const size = Math.min(9, scale * 0.085);
  context.strokeStyle = palette.quiet;
  context.lineWidth = 1.5;
  for (let i = 0; i < card.devices.length; ) {
    const first = card.devices[i];
    let last = first;
    for (i++; i < card.devices.length; i++) {
      const next = card.devices[i];
      if (root[next] !== root[first] || y[next] !== y[first]) break;
      last = next;
    }
    if (!root[first]) continue;
    const [left, top] = place({ scene, scale }, x[first], y[first] + CELL + 0.05);
    const right = (x[last] + CELL - scene.camera.x) * scale;
    let start = left;
    if (size >= 8) {
      context.font = `${size}px ${FONT}`;
      context.fillStyle = palette.quiet;
      start = write(context, scene.fleet.text(root, first), left, top + size * 0.4, right - left) + 4;
    }
    if (start >= right) continue;
    context.beginPath();
    context.moveTo(start, top);
    context.lineTo(right, top);
    context.stroke();
  }
}

function drawCell(brush, device) {
  const { scene, scale } = brush;
  const { cells, parts } = scene.layout;
  const [x, y] = place(brush, cells.x[device], cells.y[device]);
  const [width, height] = [cells.size[device] * scale, cells.height[device] * scale];
  if (x + width < 0 || y + height < 0 || x > scene.width || y > scene.height) return;
  work.cells++;
  const look = fillCell(brush, device, x, y, width, height);
  const hasParts = parts.has(device) && scale >= PARTS_FROM;
  if (scale >= 36) nameCell(brush, device, look, x, y, width, height, hasParts);
  if (hasParts) {
    for (const part of scene.fleet.partsOf(device)) {
      const at = place(brush, cells.x[part], cells.y[part]);
      const [w, h] = [cells.size[part] * scale, cells.height[part] * scale];
      work.cells++;
      const partLook = fillCell(brush, part, at[0], at[1], w, h, true);
      if (w >= 44 && h >= 12) namePart(brush, part, partLook, at[0], at[1], w, h);
    }
  }
}

function fillCell({ context, palette, scene, scale, patterns }, device, x, y, width, height, isPart = false) {
  const look = scene.legend[scene.kinds[device]] ?? scene.legend[0];
  const radius = isPart ? Math.min(2, width / 6) : Math.min(5, scale / 9);
  const isDim = scene.dimmed?.[device];
  const hasPath = scale >= 20;
  const shape = () => {
    if (!hasPath) return context.fillRect(x, y, width, height);
    context.beginPath();
    context.roundRect(x, y, width, height, radius);
    context.fill();
  };
  if (look.pattern === OUTLINE) {
    context.fillStyle = palette.card;
    shape();
    context.strokeStyle = look.colour;
    context.lineWidth = scale >= 30 ? 2 : 1;
    context.setLineDash(scale >= 30 ? [5, 3] : []);
    context.strokeRect(x + 1, y + 1, width - 2, height - 2);
    context.setLineDash([]);
    return { colour: palette.card };
  }
  context.globalAlpha = isDim ? 0.22 : 1;
  context.fillStyle = look.colour;
  shape();
  if (look.pattern === HALF) fillLevel(context, palette, scene, device, x, y, width, height, radius, hasPath);
  else if (look.pattern && patterns[look.pattern]) {
    context.fillStyle = patterns[look.pattern];
    // Names are above, where no line crosses them.
    if (scale < 36) shape();
    else context.fillRect(x, y + height / 2, width, height / 2);
  }
  if (isPart) {
    context.strokeStyle = palette.card;
    context.lineWidth = 1;
    context.strokeRect(x, y, width, height);
  }
  context.globalAlpha = 1;
  return isDim ? { colour: palette.card } : look;
}

/** A device that is used in part is filled up to its use. */
function fillLevel(context, palette, scene, device, x, y, width, height, radius, hasPath) {
  const level = height * Math.min(1, scene.fleet.devices.used[device] / 1000);
  const areParts = scene.layout.parts.has(device) && scene.camera.scale >= PARTS_FROM;
  if (level <= 0 || areParts) return;
  context.fillStyle = palette.taken;
  if (!hasPath) return context.fillRect(x, y + height - level, width, level);
  context.beginPath();
  context.roundRect(x, y + height - level, width, level, [level > height - 2 ? radius : 0, level > height - 2 ? radius : 0, radius, radius]);
  context.fill();
}

function nameCell(brush, device, look, x, y, width, height, hasParts) {
  const { context, scene, scale } = brush;
  const { fleet } = scene;
  const pad = Math.max(3, width * 0.07);
  const size = Math.min(13, Math.max(8, scale * 0.14));
  context.fillStyle = scene.dimmed?.[device] ? brush.palette.quiet : inkOn(look.colour);
  context.font = `600 ${size}px ${FONT}`;
  let base = y + pad + size * 0.8;
  const [name, rest] = inTwo(context, fleet.deviceName(device), width - 2 * pad, scale);
  // The rest of a long name tells nothing in a small cell.
  if (scale < 52 && context.measureText(name).width > width - 2 * pad) return;
  write(context, name, x + pad, base, width - 2 * pad);
  if (rest) write(context, rest, x + pad, (base += size * 1.1), width - 2 * pad);
  if (scale < 62) return;
  const small = Math.min(11, size * 0.85);
  context.font = `${small}px ${FONT}`;
  const lines = hasParts ? usage(fleet, device).slice(0, 1) : describeUse(fleet, device, scale);
  for (const line of lines) {
    base += small * 1.35;
    if (base > y + (hasParts ? height * 0.44 : height - pad / 2)) break;
    write(context, line, x + pad, base, width - 2 * pad);
  }
}

/** A long name takes two lines where there is room, broken after a dash. */
function inTwo(context, name, width, scale) {
  if (scale < 44 || context.measureText(name).width <= width) return [name, ""];
  for (let at = name.length; (at = name.lastIndexOf("-", at - 1)) > 0; ) {
    const first = name.slice(0, at + 1);
    const rest = name.slice(at + 1);
    if (Math.max(context.measureText(first).width, context.measureText(rest).width) <= width) return [first, rest];
  }
  return [name, ""];
}

function namePart(brush, part, look, x, y, width, height) {
  const { context, scene } = brush;
  const size = Math.min(10, height * 0.55);
  context.font = `${size}px ${FONT}`;
  context.fillStyle = inkOn(look.colour);
  write(context, scene.fleet.deviceName(part), x + 3, y + height / 2 + size * 0.35, width - 6);
}

function describeUse(fleet, device, scale) {
  const claims = fleet.claimsOf(device);
  if (!claims.length) return usage(fleet, device);
  const pods = [...new Set(claims.map((claim) => fleet.claims.pod[claim]).filter((pod) => pod >= 0))];
  const lines = pods.length ? pods.map((pod) => fleet.text(fleet.pods.name, pod)) : [];
  const names = claims.map((claim) => fleet.text(fleet.claims.name, claim));
  const shared = fleet.devices.state[device] === 2 ? usage(fleet, device) : [];
  return [...shared, ...lines, ...(scale > 90 || !lines.length ? names : [])];
}

function usage(fleet, device) {
  const { state, used } = fleet.devices;
  if (state[device] === 0) return ["free"];
  if (state[device] === 2) return [`${Math.round(used[device] / 10)} % used`];
  return { 3: ["blocked"], 4: ["tainted"], 5: ["not usable"], 6: ["missing"], 7: ["not known"] }[state[device]] ?? [];
}

// --- marks ------------------------------------------------------------------------------------

function drawMarks(context, scene) {
  const { marks, layout, ratio, camera } = scene;
  const palette = PALETTES[scene.theme];
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const brush = { scene, scale: camera.scale };
  const outline = (device, colour, thick, gap) => {
    if (device < 0 || device >= layout.cells.x.length || layout.cells.card[device] < 0) return;
    const [x, y] = place(brush, layout.cells.x[device], layout.cells.y[device]);
    const [w, h] = [layout.cells.size[device] * camera.scale, layout.cells.height[device] * camera.scale];
    if (x + w < -9 || y + h < -9 || x > scene.width + 9 || y > scene.height + 9) return;
    context.strokeStyle = colour;
    context.lineWidth = thick;
    context.strokeRect(x - gap, y - gap, w + 2 * gap, h + 2 * gap);
  };
  if (marks.card >= 0 && camera.scale * ratio < SHAPES_FROM) {
    const card = layout.cards[marks.card];
    const [x, y] = place(brush, card.x, card.y);
    context.strokeStyle = palette.accent;
    context.lineWidth = 2;
    context.strokeRect(x - 2, y - 2, card.width * camera.scale + 4, card.height * camera.scale + 4);
  }
  for (const device of marks.linked ?? []) outline(device, palette.text, 2, 1);
  outline(marks.hovered, palette.text, 1.5, 1);
  outline(marks.selected, palette.card, 5, 2);
  outline(marks.selected, palette.accent, 3, 2);
  context.setTransform(1, 0, 0, 1, 0, 0);
}

// --- help -------------------------------------------------------------------------------------

function place({ scene, scale }, x, y) {
  return [(x - scene.camera.x) * scale, (y - scene.camera.y) * scale];
}

/** Write a text, shortened to fit; return where it ends. */
function write(context, text, x, y, width) {
  work.texts++;
  let shown = text;
  let wide = context.measureText(text).width;
  if (wide > width) {
    const letters = Math.floor((text.length * width) / wide) - 1;
    if (letters < 2) return x;
    // The end of a name tells more than its middle: worker-0012, pci-0000-9a-00-0.
    const tail = letters < 10 && text.length > 14 ? letters : Math.ceil(letters * 0.6);
    shown = `${text.slice(0, letters - tail)}…${text.slice(-tail)}`;
    wide = width;
  }
  context.fillText(shown, x, y);
  return x + wide;
}

let patternCache = { key: "" };

function patternsOf(context, palette) {
  if (patternCache.key === palette.card) return patternCache.patterns;
  const patterns = {};
  for (const pattern of [STRIPES, CROSSES, DOTS]) {
    const size = { [STRIPES]: 8, [CROSSES]: 10, [DOTS]: 6 }[pattern];
    const tile = document.createElement("canvas");
    tile.width = tile.height = size;
    const pen = tile.getContext("2d");
    pen.strokeStyle = pen.fillStyle = palette.card;
    pen.globalAlpha = 0.55;
    pen.lineWidth = 1.5;
    if (pattern === DOTS) pen.fillRect(2, 2, 2, 2);
    else drawLines(pen, size, pattern === CROSSES);
    patterns[pattern] = context.createPattern(tile, "repeat");
  }
  patternCache = { key: palette.card, patterns };
  return patterns;
}

function drawLines(pen, size, isCrossed) {
  pen.beginPath();
  for (const shift of [-size, 0, size]) {
    pen.moveTo(shift, size);
    pen.lineTo(shift + size, 0);
    if (isCrossed) {
      pen.moveTo(shift, 0);
      pen.lineTo(shift + size, size);
    }
  }
  pen.stroke();
}
