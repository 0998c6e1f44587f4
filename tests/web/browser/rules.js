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
  // In a sentence, a link may be as low as its line; alone in a row, another row is near.
  const isCrowded = (each) => {
    const isAlone = ![...each.parentElement.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    return isAlone && each.closest("li, dd") && each.getBoundingClientRect().height < 24;
  };
  // The ratio of WCAG between a text and what is behind it; large or bold text may have less.
  const channels = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const light = (colour) => {
    const [r, g, b] = channels(colour).map((each) => (each / 255 <= 0.04045 ? each / 255 / 12.92 : ((each / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (each) => {
    for (let at = each; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((channels(colour)[3] ?? 1) === 1) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const isFaint = (each) => {
    const style = getComputedStyle(each);
    const [ink, ground] = [light(style.color), light(behind(each))];
    const ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    const isLarge = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    return ratio < (isLarge ? 3 : 4.5);
  };
  const hasText = (each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  const faint = all("body *").filter((each) => hasText(each) && !each.closest(":disabled, .unseen, datalist, option") && isFaint(each));
  return {
    "text without contrast": shown(faint),
    "controls without a name": shown(all("button, input, select, textarea, a[href], [role=button], canvas, dialog, section").filter((each) => !nameOf(each))),
    "ids used twice": ids.filter((id, i) => ids.indexOf(id) !== i),
    "references to nothing": references.flatMap((name) => all(`[${name}]`).flatMap((each) => each.getAttribute(name).split(" ").filter((id) => id && !document.getElementById(id)))),
    "positive tabindex": shown(all("[tabindex]").filter((each) => each.tabIndex > 0)),
    "clickable but not a control": shown(all("div[onclick], span[onclick]")),
    "small targets": shown(all("button, select, input").filter(isSmall)),
    "small links above each other": shown(all(".link").filter(isCrowded)),
    "no first heading": all("h1").length === 1 ? [] : ["page"],
    "lists of tabs with other children": shown(all("[role=tablist]").filter((each) => [...each.children].some((child) => child.getAttribute("role") !== "tab"))),
    "lists with other children": shown(all("ul, ol").filter((each) => [...each.children].some((child) => child.tagName !== "LI"))),
    "tables without a heading": shown(all("table").filter((each) => !each.querySelector("th"))),
    "wider than the window": document.documentElement.scrollWidth > innerWidth ? ["page"] : [],
    "no language": document.documentElement.lang ? [] : ["html"],
    "no title": document.title ? [] : ["title"],
  };
}
