// What the colors of the maps' dots tell. Names get a color and a shape each, the shape as a second
// cue; numbers get shades of one hue. What is not known stays grey, small and hollow.

(function (bw) {
  "use strict";

  const MAP_COLORS = [["word", "this word"], ["sentence", "sentence"], ["sense", "sense"],
    ["pos", "part of speech"], ["position", "position"], ["frequency", "frequency"],
    ["cosine", "cosine"]];
  const ASKED = new Set(["sense", "pos", "frequency", "cosine"]); // the server knows them
  const N_COLORS = 7; // --name-0 ... of palette.css
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x",
    "star", "hexagon"]; // 7 colors, 9 shapes: 63 names before a pair comes again
  const LEGEND_NAMES = 14;
  const POS = { NOUN: "noun", VERB: "verb", ADJ: "adjective", ADV: "adverb" };
  const SCALE_STEPS = 24;

  /** Whether what the color needs is here. */
  function isPainted() {
    const { color, paint, run, chosen } = bw.state;
    if (!ASKED.has(color)) return true;
    if (!paint || paint.color !== color || paint.text !== run.text) return false;
    return color !== "cosine" || (paint.place[0] === chosen.sentence && paint.place[1] === chosen.token);
  }

  /** [sentence, token] -> name or null, for the colors that are names. */
  function namer() {
    const { color, paint } = bw.state;
    if (color === "sentence") return (s) => String(s + 1);
    const names = new Map(paint.tags.map(([s, t, pos, sense]) =>
      [`${s} ${t}`, color === "pos" ? POS[pos] || pos : sense]));
    return (s, t) => names.get(`${s} ${t}`) || null;
  }

  /** Names in the order in which the text has them. */
  function namesOf(nameOf) {
    const found = new Set(bw.state.run.sentences.flatMap((tokens, s) => tokens.map((_, t) => nameOf(s, t))));
    found.delete(null);
    return [...found];
  }

  /** Cosines of all rows of the text with the chosen token, for shares s of the layers. */
  function cosines(encoder, s) {
    const own = bw.state.paint.encoders[encoder];
    if (!own) return null;
    if (typeof own.products === "string") {
      own.products = bw.unpack(own.products);
      own.norms = bw.unpack(own.norms);
    }
    const weights = bw.pairWeights(s);
    const N = own.products.length / weights.length;
    const length = Math.max(0, weights.reduce((sum, weight, p) => sum + weight * own.norm[p], 0));
    const values = new Float64Array(N);
    for (let i = 0; i < N; i++) {
      let product = 0;
      let squared = 0;
      for (let p = 0; p < weights.length; p++) {
        product += weights[p] * own.products[p * N + i];
        squared += weights[p] * own.norms[p * N + i];
      }
      values[i] = squared * length > 0 ? product / Math.sqrt(squared * length) : 0;
    }
    return values;
  }

  /** (sentence, token, row of the text) -> share of the scale from 0 to 1, or null. */
  function measure(encoder, s) {
    const { color, run, paint } = bw.state;
    if (color === "position") {
      const last = Math.max(1, ...run.sentences.map((tokens) => tokens.length - 1));
      return (_, t) => t / last;
    }
    if (color === "frequency") {
      const top = Math.log(Math.max(2, paint.n_words));
      return (sentence, t) => {
        const rank = paint.ranks[sentence][t];
        return rank === null ? null : 1 - Math.log(rank) / top;
      };
    }
    const values = cosines(encoder, s);
    return (_, __, row) => (values ? Math.max(0, Math.min(1, values[row])) : null);
  }

  /** "#rrggbb" -> [red, green, blue]. */
  function channels(hex) {
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  }

  /** Shades of one hue, light to strong (in the dark theme dark to strong). */
  function scaleColors() {
    const [low, high] = [channels(bw.color("ground")), channels(bw.color("scale"))];
    return Array.from({ length: SCALE_STEPS }, (_, i) => {
      const share = 0.16 + (0.84 * i) / (SCALE_STEPS - 1);
      return `rgb(${low.map((c, k) => Math.round(c + share * (high[k] - c))).join(",")})`;
    });
  }

  const isNamed = () => ["sentence", "sense", "pos"].includes(bw.state.color);
  const styleOf = (index) => ({ color: bw.color(`name-${index % N_COLORS}`), symbol: SYMBOLS[index % SYMBOLS.length] });

  /** Colors and symbols of an encoder's drawn rows for shares s, or null where the dots only tell
   *  the chosen word. known: which rows have one. */
  function paintRows(encoder, s) {
    const { color, run, maps } = bw.state;
    if (color === "word" || !isPainted()) return null;
    const { rows } = maps.encoders[encoder];
    const { places } = run.encoders[encoder];
    const paint = { colors: [], symbols: [], known: [] };
    const add = (style, isKnown) => {
      paint.colors.push(style.color);
      paint.symbols.push(style.symbol);
      paint.known.push(isKnown);
    };
    const unknown = { color: bw.color("second"), symbol: "circle-open" };
    if (isNamed()) {
      const nameOf = namer();
      const styles = new Map(namesOf(nameOf).map((name, i) => [name, styleOf(i)]));
      for (const row of rows) {
        const style = styles.get(nameOf(...places[row]));
        add(style || unknown, Boolean(style));
      }
      return paint;
    }
    const scale = scaleColors();
    const share = measure(encoder, s);
    for (const row of rows) {
      const at = share(...places[row], row);
      if (at === null) add(unknown, false);
      else add({ color: scale[Math.round(at * (SCALE_STEPS - 1))], symbol: "circle" }, true);
    }
    return paint;
  }

  /** {entries: [{color, symbol, text}], scale: [low text, colors, high text], note}. */
  function legend() {
    const { color, run, paint } = bw.state;
    if (color === "word") return null;
    if (!isPainted()) return { entries: [], note: "\u2026" };
    if (isNamed()) {
      const names = namesOf(namer());
      const entries = names.slice(0, LEGEND_NAMES).map((name, i) =>
        ({ ...styleOf(i), text: color === "sentence" ? `sentence ${name}` : name }));
      const what = color === "sense" ? "sense" : "part of speech";
      const left = names.length - entries.length;
      const note = [left > 0 ? `and ${left} more` : "",
        color === "sentence" ? "" : names.length ? `hollow: ${what} not known`
          : `no ${what} is known here: sources speak of words in their own sentences only`];
      return { entries, note: note.filter(Boolean).join(" \u00b7 ") };
    }
    if (color === "position") {
      const longest = Math.max(...run.sentences.map((tokens) => tokens.length));
      return { entries: [], scale: ["first word", scaleColors(), `word ${longest}`], note: "of its sentence" };
    }
    if (color === "frequency") {
      if (!paint.n_words) return { entries: [], note: "no model here has a vocabulary: frequencies are not known" };
      const many = paint.n_words.toLocaleString("en");
      return { entries: [], scale: [`rank ${many}`, scaleColors(), "rank 1"],
        note: "in the training text, on a log scale \u00b7 hollow: not among these words" };
    }
    const first = Object.values(paint.encoders).find(Boolean);
    return { entries: [], scale: ["0 or less", scaleColors(), "1"],
      note: `cosine to \u201c${bw.chosenWord()}\u201d in each map\u2019s own layer or mix${first && first.centered ? ", mean removed" : ""}` };
  }

  // Outlines in a 12 x 12 box, for the legend.
  const POLYGONS = {
    square: "2,2 10,2 10,10 2,10", diamond: "6,0.8 11.2,6 6,11.2 0.8,6",
    "triangle-up": "6,1 11,10 1,10", "triangle-down": "6,11 11,2 1,2",
    cross: "4.2,1 7.8,1 7.8,4.2 11,4.2 11,7.8 7.8,7.8 7.8,11 4.2,11 4.2,7.8 1,7.8 1,4.2 4.2,4.2",
    x: "3,1 6,4 9,1 11,3 8,6 11,9 9,11 6,8 3,11 1,9 4,6 1,3",
    star: "6,0.5 7.5,4.3 11.5,4.5 8.4,7 9.5,11 6,8.7 2.5,11 3.6,7 0.5,4.5 4.5,4.3",
    hexagon: "6,0.8 10.6,3.4 10.6,8.6 6,11.2 1.4,8.6 1.4,3.4",
  };

  function swatch({ color, symbol }) {
    const [tag, outline] = symbol === "circle" ? ["circle", { cx: 6, cy: 6, r: 4.6 }] : ["polygon", { points: POLYGONS[symbol] }];
    return bw.svg("svg", { viewBox: "0 0 12 12", class: "swatch" }, bw.svg(tag, { ...outline, fill: color }));
  }

  function drawLegend(node) {
    const found = legend();
    node.hidden = !found;
    if (!found) return;
    const parts = found.entries.map((entry) =>
      bw.element("span", { class: "entry" }, swatch(entry), bw.element("span", {}, entry.text)));
    if (found.scale) {
      const [low, colors, high] = found.scale;
      const bar = bw.element("i", { class: "scale" });
      bar.style.background = `linear-gradient(to right, ${colors.join(",")})`;
      parts.push(bw.element("span", {}, low), bar, bw.element("span", {}, high));
    }
    node.replaceChildren(...parts, bw.element("span", { class: "note" }, found.note));
    node.title = node.textContent;
  }

  /** Whether the server has to be asked before the maps can be colored. */
  const mustAsk = () => bw.state.run && ASKED.has(bw.state.color) && !isPainted();

  Object.assign(bw, { MAP_COLORS, paintRows, drawLegend, cosines, mustAsk, channels });
})(window.bothways);
