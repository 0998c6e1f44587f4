async ([steps]) => {
  const canvas = document.querySelector("canvas");
  const { work } = await import("./static/paint.js");
  const box = canvas.getBoundingClientRect();
  const at = { clientX: box.left + box.width / 3, clientY: box.top + box.height / 3, bubbles: true, pointerId: 1 };
  const frame = () => new Promise((done) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(0);
  }));
  canvas.setPointerCapture = () => {};
  const [waits, draws, most] = [[], [], { cells: 0, texts: 0 }];
  const timed = async (act) => {
    const started = performance.now();
    act();
    await frame();
    waits.push(performance.now() - started);
    draws.push(work.ms);
    most.cells = Math.max(most.cells, work.cells);
    most.texts = Math.max(most.texts, work.texts);
  };
  const wheel = (deltaY) => canvas.dispatchEvent(new WheelEvent("wheel", { ...at, deltaY, cancelable: true }));
  const point = (kind, x) => canvas.dispatchEvent(new PointerEvent(kind, { ...at, clientX: at.clientX - x }));
  for (let i = 0; i < steps; i++) {
    for (let zoom = 0; zoom < 14; zoom++) await timed(() => wheel(-100));
    point("pointerdown", 0);
    for (let x = 10; x < 200; x += 20) await timed(() => point("pointermove", x));
    point("pointerup", 200);
    for (let zoom = 0; zoom < 14; zoom++) await timed(() => wheel(100));
    point("pointerdown", 0);
    for (let x = 10; x < 200; x += 20) await timed(() => point("pointermove", x));
    point("pointerup", 200);
  }
  return { waits, draws, ...most };
}
