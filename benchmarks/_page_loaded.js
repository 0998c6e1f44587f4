() => {
  const [page] = performance.getEntriesByType("navigation");
  const files = performance.getEntriesByType("resource").filter((each) => !each.name.includes("/events"));
  const data = files.filter((each) => each.initiatorType === "fetch");
  const bytes = (list) => list.reduce((sum, each) => sum + each.encodedBodySize, 0);
  return {
    picture: performance.getEntriesByName("moor-first-picture")[0].startTime,
    all: page.encodedBodySize + bytes(files), data: bytes(data), files: files.length - data.length,
    elements: document.querySelectorAll("*").length,
  };
}
