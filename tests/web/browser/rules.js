() => {
  const text = (each) => (each?.textContent ?? "").trim();
  const nameOf = (each) =>
    each.getAttribute("aria-label") ||
    (each.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => text(document.getElementById(id))).join("") ||
    [...(each.labels ?? [])].map(text).join("") ||
    (["INPUT", "SELECT", "TEXTAREA"].includes(each.tagName) ? each.title : text(each) || each.title);
  const all = (selector) => [...document.querySelectorAll(selector)].filter((each) => each.checkVisibility());
  const shown = (list) => list.map((each) => each.outerHTML.slice(0, 120));
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  const references = ["aria-controls", "aria-labelledby", "aria-describedby", "aria-activedescendant", "for"];
  const isSmall = (each) => {
    const box = each.getBoundingClientRect();
    return !each.classList.contains("link") && each.type !== "range" && (box.width < 20 || box.height < 20);
  };
  return {
    "controls without a name": shown(all("button, input, select, textarea, a[href], [role=button], canvas, dialog, section").filter((each) => !nameOf(each))),
    "ids used twice": ids.filter((id, i) => ids.indexOf(id) !== i),
    "references to nothing": references.flatMap((name) => all(`[${name}]`).flatMap((each) => each.getAttribute(name).split(" ").filter((id) => id && !document.getElementById(id)))),
    "positive tabindex": shown(all("[tabindex]").filter((each) => each.tabIndex > 0)),
    "clickable but not a control": shown(all("div[onclick], span[onclick]")),
    "small targets": shown(all("button, select, input").filter(isSmall)),
    "lists with other children": shown(all("ul, ol").filter((each) => [...each.children].some((child) => child.tagName !== "LI"))),
    "tables without a heading": shown(all("table").filter((each) => !each.querySelector("th"))),
    "wider than the window": document.documentElement.scrollWidth > innerWidth ? ["page"] : [],
    "no language": document.documentElement.lang ? [] : ["html"],
    "no title": document.title ? [] : ["title"],
  };
}
