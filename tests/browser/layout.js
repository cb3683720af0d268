// Looks at a page as an eye would, and returns what is wrong with its text, a line each:
// text that overlaps or is covered, is cut, is tiny or too pale, and a page wider than its window.
() => {
  const faults = new Set();
  const quote = (node) => JSON.stringify(node.data.trim().replace(/\s+/g, " ").slice(0, 40));
  const ancestors = function* (element) {
    for (; element; element = element.parentElement) yield element;
  };
  const cut = (a, b) => ({
    left: Math.max(a.left, b.left), right: Math.min(a.right, b.right),
    top: Math.max(a.top, b.top), bottom: Math.min(a.bottom, b.bottom),
  });
  const width = (r) => r.right - r.left;
  const height = (r) => r.bottom - r.top;
  const style = new Map();
  const styleOf = (element) => {
    if (!style.has(element)) style.set(element, getComputedStyle(element));
    return style.get(element);
  };
  const known = new Map();
  const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 })
    .getContext("2d", { willReadFrequently: true });
  // [red, green, blue, alpha] of any colour that CSS can write.
  const colour = (text) => {
    if (!known.has(text)) {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = text;
      context.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
      known.set(text, [r, g, b, a / 255]);
    }
    return known.get(text);
  };
  const opaque = (element) => colour(styleOf(element).backgroundColor)[3] > 0.9;
  const over = (top, below) => top.slice(0, 3).map((c, i) => c * top[3] + below[i] * (1 - top[3]));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  // What lies behind everything, which a dark page has dark.
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = "Canvas";
  const paper = colour(getComputedStyle(probe).color).slice(0, 3);
  probe.remove();
  // Null where a picture or gradient makes it unknown.
  const background = (element) => {
    const layers = [];
    for (const one of ancestors(element)) {
      if (styleOf(one).backgroundImage !== "none") return null;
      layers.push(colour(styleOf(one).backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    return layers.reduceRight((below, top) => over(top, below), paper);
  };
  // Content for screen readers alone is one pixel in size.
  const forEyes = (element) => {
    for (const one of ancestors(element)) {
      const box = one.getBoundingClientRect();
      if (styleOf(one).position === "absolute" && box.width <= 1 && box.height <= 1) return false;
    }
    return element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  };

  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    const free = (element) => [...ancestors(element.parentElement)]
      .every((one) => one === document.body || one === root || styleOf(one).overflowX === "visible");
    const wide = [...document.body.querySelectorAll("*")]
      .filter((e) => e.getBoundingClientRect().right + scrollX > root.clientWidth + 0.5 && free(e)).at(-1);
    faults.add(`the page is ${root.scrollWidth} wide in a window of ${root.clientWidth}: ` +
      (wide ? wide.outerHTML.slice(0, 80) : ""));
  }

  // What of a rectangle its ancestors let through. Says so where the rest cannot be scrolled to.
  const through = (node, rect, element) => {
    let seen = rect;
    for (const one of ancestors(element)) {
      const { overflowX, overflowY, textOverflow, display, position } = styleOf(one);
      if (one === root || one === document.body) continue;
      if (display === "inline" && one.tagName !== "svg") continue;
      const box = one.getBoundingClientRect();
      const shut = { left: seen.left, right: seen.right, top: seen.top, bottom: seen.bottom };
      if (overflowX !== "visible") Object.assign(shut, { left: box.left, right: box.right });
      if (overflowY !== "visible") Object.assign(shut, { top: box.top, bottom: box.bottom });
      const rest = cut(seen, shut);
      const hides = (overflow) => overflow === "hidden" || overflow === "clip";
      if (hides(overflowX) && textOverflow !== "ellipsis" && width(seen) - width(rest) > 1.5) {
        faults.add(`cut at the side: ${quote(node)}`);
      }
      // A line's box is taller than its letters.
      if (hides(overflowY) && height(seen) - height(rest) > 0.25 * height(rect)) {
        faults.add(`cut in height: ${quote(node)}`);
      }
      seen = rest;
      if (width(seen) <= 0 || height(seen) <= 0) return null;
      if (position === "fixed") break;
    }
    if (seen.right + scrollX < 2 || seen.bottom + scrollY < 2) {
      faults.add(`beyond the edge: ${quote(node)}`);
      return null;
    }
    return seen;
  };

  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    const element = node.parentElement;
    if (!node.data.trim() || /^(script|style|template|noscript|title)$/i.test(element.tagName)) continue;
    if (!forEyes(element)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const { color, fill, fontSize, fontWeight } = styleOf(element);
    for (const rect of range.getClientRects()) {
      if (rect.width < 0.5 || rect.height < 0.5) continue;
      const seen = through(node, rect, element);
      if (!seen) continue;
      texts.push({ node, element, seen });
      if (rect.height < 10) faults.add(`tiny, ${rect.height.toFixed(1)} px: ${quote(node)}`);
    }
    const behind = element instanceof SVGElement ? null : background(element);
    if (behind && !element.closest(":disabled")) {
      const size = parseFloat(fontSize);
      const large = size >= 24 || (size >= 18.66 && fontWeight >= 700);
      let alpha = 1;
      for (const one of ancestors(element)) alpha *= parseFloat(styleOf(one).opacity);
      const [r, g, b, a] = colour(color);
      const found = contrast(over([r, g, b, a * alpha], behind), behind);
      if (found < (large ? 3 : 4.5)) faults.add(`contrast ${found.toFixed(1)}: ${quote(node)}`);
    }
  }

  // Something that is meant to lie above the rest hides what is under it and can be moved away.
  const floats = (element, until) => {
    for (const one of ancestors(element)) {
      if (one === until) return false;
      const above = /sticky|fixed/.test(styleOf(one).position) || one.matches("[role=tooltip], dialog, [popover]");
      if (above && [...ancestors(element)].some((e) => one.contains(e) && opaque(e))) return true;
    }
    return false;
  };
  const shared = (a, b) => {
    for (const one of ancestors(a)) if (one.contains(b)) return one;
  };
  texts.sort((a, b) => a.seen.top - b.seen.top);
  texts.forEach((a, i) => {
    for (let j = i + 1; j < texts.length && texts[j].seen.top < a.seen.bottom; j++) {
      const b = texts[j];
      if (a.node === b.node) continue;
      const both = cut(a.seen, b.seen);
      if (width(both) < 1.5 || height(both) < 0.3 * Math.min(height(a.seen), height(b.seen))) continue;
      const common = shared(a.element, b.element);
      if (floats(a.element, common) || floats(b.element, common)) continue;
      faults.add(`overlap: ${quote(a.node)} and ${quote(b.node)}`);
    }
  });

  const here = [scrollX, scrollY];
  for (let top = 0; top < root.scrollHeight; top += innerHeight) {
    scrollTo({ left: 0, top, behavior: "instant" });
    for (const { node, element, seen } of texts) {
      const x = (seen.left + seen.right) / 2 + here[0] - scrollX;
      const y = (seen.top + seen.bottom) / 2 + here[1] - scrollY;
      const front = document.elementFromPoint(x, y);
      if (!front || front.contains(element) || element.contains(front)) continue;
      const common = shared(front, element);
      const lid = [...ancestors(front)].find((e) => e === common || opaque(e));
      if (lid === common || floats(front, common) || floats(element, common)) continue;
      faults.add(`covered: ${quote(node)}`);
    }
  }
  scrollTo({ left: here[0], top: here[1], behavior: "instant" });
  return [...faults];
}
