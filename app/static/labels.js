// Numbers beside the dots of a map: where there is room, covering neither dots nor each other.

(function (bw) {
  "use strict";

  const HEIGHT = 1.04; // of a label, in sizes of its letters
  const CHARACTER = 0.576; // width of one
  const FEW = 8; // so many are always shown
  const CROWDED = 16; // cost of a place that covers something
  const SAME = 0.02; // pixels: nearer than that are only identical vectors
  // Around a dot, best place first: right above, right, left above, ... then a ring further out.
  const ANGLES = [-45, 0, -135, 180, 45, 135, -90, 90].map((degrees) => (degrees * Math.PI) / 180);
  const RINGS = [3, 9, 16];

  const overlap = (a, b) =>
    Math.max(0, Math.min(a.x + a.w, b.x + b.w) - Math.max(a.x, b.x)) *
    Math.max(0, Math.min(a.y + a.h, b.y + b.h) - Math.max(a.y, b.y));

  /** Identical dots get one label: "\u00d76". Dots: [{x, y, r, text, strong}] in pixels. */
  function groupDots(dots) {
    const groups = [];
    for (const dot of dots) {
      const near = groups.find((g) => Math.abs(g.x - dot.x) < SAME && Math.abs(g.y - dot.y) < SAME);
      if (!near) {
        groups.push({ ...dot, count: 1 });
        continue;
      }
      near.count += 1;
      near.text = `\u00d7${near.count}`;
      near.strong = near.strong || dot.strong;
      near.r = Math.max(near.r, dot.r);
    }
    return groups;
  }

  /** Places one label a group; returns [{x, y, text, strong}] with x, y the label's middle.
   *
   *  others: [x, y, x, y, ...] pixels of dots without a label; size: of the letters in pixels. */
  function placeLabels(dots, others, width, height, size) {
    const h = HEIGHT * size;
    const groups = groupDots(dots);
    const taken = groups.map((g) => ({ x: g.x - g.r, y: g.y - g.r, w: 2 * g.r, h: 2 * g.r }));
    const placed = [];
    groups.sort((a, b) => Number(b.strong || 0) - Number(a.strong || 0));
    for (const group of groups) {
      if (group.x < 0 || group.y < 0 || group.x > width || group.y > height) continue;
      const w = CHARACTER * size * group.text.length;
      let best = null;
      search: for (const ring of RINGS) {
        for (const angle of ANGLES) {
          const reach = group.r + ring;
          const x = group.x + Math.cos(angle) * (reach + w / 2);
          const y = group.y + Math.sin(angle) * (reach + h / 2 - 2);
          const box = { x: x - w / 2, y: y - h / 2, w, h };
          let cost = ring / 10;
          if (box.x < 0 || box.y < 0 || box.x + w > width || box.y + h > height) cost += 500;
          for (const rectangle of taken) cost += 4 * overlap(box, rectangle);
          for (let i = 0; i < others.length; i += 2) {
            if (others[i] > box.x - 2 && others[i] < box.x + w + 2
              && others[i + 1] > box.y - 2 && others[i + 1] < box.y + h + 2) cost += 6;
          }
          if (!best || cost < best.cost) best = { x, y, cost, box };
          if (cost < 0.5) break search;
        }
      }
      // Of many numbers those that find no room are left out; pointing at a dot tells its sentence.
      if (groups.length > FEW && !group.strong && best.cost > CROWDED) continue;
      taken.push(best.box);
      placed.push({ x: best.x, y: best.y, text: group.text, strong: group.strong });
    }
    return placed;
  }

  bw.placeLabels = placeLabels;
})(window.bothways);
