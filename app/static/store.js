// What the page knows, and who wants to hear of changes. Loaded first.
//
// The server tells the page about a text (run), its maps and the chosen token (query). Everything
// that moves while a slider is dragged is computed here from those, without asking it again.

window.bothways = window.bothways || {};

(function (bw) {
  "use strict";

  const listeners = new Map(); // topic -> callbacks
  const mounts = new Map(); // part of the page -> function that draws it
  let mounting = null; // while a part is mounted: what ends its listening

  bw.state = {
    bank: null, // candidate neighbors that every visitor has
    run: null, // the text: sentences, norms of its tokens
    maps: null, // coordinates by encoder
    query: null, // the chosen token, and what each mix is good for
    near: null, // its candidate neighbors with their products, see ranking.js
    pools: null, // what there is to look in: see views/nearby.py
    chosen: { sentence: 0, token: 0 },
    lasso: [], // [sentence, token] of tokens caught on a map
    color: "word", // what the maps' colors tell, see map_colors.js
    // Which tokens may be neighbors, and what near means: see app/choice.py.
    choice: { pools: ["examples", "text"], words: "any", pos: null, metric: "cosine",
      centered: true, unit: false, upload: null },
  };

  /** Calls fn whenever the topic changes. Topics: encoders, run, maps, query, chosen, lasso, near (new
   *  neighbors), weights (every frame of a drag), settled (the end of one), theme, busy. */
  bw.on = function (topic, fn) {
    if (!listeners.has(topic)) listeners.set(topic, new Set());
    listeners.get(topic).add(fn);
    if (mounting) mounting.push(() => listeners.get(topic).delete(fn));
  };

  bw.emit = function (topic, detail) {
    for (const fn of listeners.get(topic) || []) {
      try {
        fn(detail);
      } catch (error) {
        console.error(`bothways ${topic}:`, error); // one broken view must not stop the others
      }
    }
  };

  /** Registers how a part of the page is drawn: fn(element, {trigger, props, watch, ...options}). */
  bw.part = function (name, fn) {
    mounts.set(name, fn);
  };

  /** Called by Gradio once for each part, when its element is on the page. */
  bw.mount = function (name, element, { trigger, props, ...tools }) {
    const send = (event, detail) => {
      props.value = JSON.stringify(detail); // see app/events.py
      trigger(event, detail);
    };
    if (!tools.perEncoder) {
      mounts.get(name)(element, { trigger: send, props, ...tools });
      return;
    }
    const { value } = props; // what it starts with; later the value is what it sends
    let ends = [];
    let drawn = null;
    bw.whenKnown(() => {
      const depths = JSON.stringify([bw.state.bank.elmo, bw.encoderList()]);
      if (depths === drawn) return;
      drawn = depths;
      ends.forEach((end) => end());
      ends = mounting = [];
      mounts.get(name)(element, { trigger: send, props: { value }, ...tools });
      mounting = null;
    });
  };

  /** The encoders on the page, as they are called where concatenated stands against joint: [{kind,
   *  name, n_layers, d_model, halves}], those in two halves first. */
  bw.encoderList = function () {
    const list = Object.entries(bw.state.bank.encoders).map(([kind, encoder]) =>
      ({ kind, name: encoder.contrast, n_layers: encoder.n_layers, d_model: encoder.d_model,
        halves: encoder.halves }));
    return [...list.filter(({ halves }) => halves), ...list.filter(({ halves }) => !halves)];
  };

  /** Base64 of little-endian float32 numbers -> Float32Array. */
  bw.unpack = function (text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Float32Array(bytes.buffer);
  };

  /** A new element with attributes, then children (strings become text, never HTML). */
  bw.element = function (tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === false || value == null) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child != null));
    return node;
  };

  /** Draws controls anew; whoever was on one of them with the keyboard stays on it. */
  bw.refill = function (element, ...children) {
    const nameOf = (node) => {
      const group = node.closest("[role=group]");
      return [group && group.getAttribute("aria-label"), node.dataset.key || node.textContent].join();
    };
    const held = element.contains(document.activeElement) && nameOf(document.activeElement);
    element.replaceChildren(...children);
    const again = held && [...element.querySelectorAll("button, select, input")].find((n) => nameOf(n) === held);
    if (again) again.focus();
  };

  /** A new SVG element with attributes, then children (strings become text, never markup). */
  bw.svg = function (tag, attributes, ...children) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };

  /** Calls draw whenever what is drawn in pixels has to be drawn anew: another width, theme, or size of
   *  letters. */
  bw.redraws = function (element, draw) {
    let width = 0;
    new ResizeObserver(() => {
      if (element.clientWidth === width) return;
      width = element.clientWidth;
      draw();
    }).observe(element);
    new MutationObserver(draw).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  };

  /** A color of palette.css as the theme has it now. */
  bw.color = function (name) {
    return getComputedStyle(document.body).getPropertyValue(`--${name}`).trim();
  };

  /** A size of letters of palette.css in pixels, as it is now: lectures have larger ones. */
  bw.size = function (name) {
    return parseFloat(getComputedStyle(document.body).getPropertyValue(`--${name}`));
  };

  /** Text for a Plotly label, which would take "<S>" for a tag. */
  bw.escape = function (text) {
    return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  };

  /** Which word is chosen, as it is spelled in the text. */
  bw.chosenWord = function () {
    const { run, chosen } = bw.state;
    return run ? run.sentences[chosen.sentence][chosen.token] : "";
  };

  /** Whether two tokens are copies of one word; case does not matter. */
  bw.sameWord = function (a, b) {
    return a === b || a.toLowerCase() === b.toLowerCase();
  };

  /** Chooses a token here at once; the part that was clicked tells the server. */
  bw.choose = function (sentence, token) {
    bw.state.chosen = { sentence, token };
    bw.emit("chosen");
  };

  /** Calls fn once, when a topic is on the page. */
  bw.whenFirst = function (topic, fn) {
    if (bw.state[topic]) return fn();
    const once = () => {
      listeners.get(topic).delete(once);
      fn();
    };
    bw.on(topic, once);
  };

  const options = new Map(); // further choices of the views, by name: {get, set, usual}

  /** A choice that belongs to the view and goes along in its link: get() is a word, a number or a
   *  switch; set(value) takes what a link brings, and must not trust it. */
  bw.option = function (name, get, set) {
    const usual = options.has(name) ? options.get(name).usual : get();
    options.set(name, { get, set, usual });
  };

  bw.changedOptions = () => Object.fromEntries([...options].filter(([, { get, usual }]) => get() !== usual)
    .map(([name, { get }]) => [name, get()]));

  /** All options as a link has them; those it does not name as they usually are. */
  bw.setOptions = function (values) {
    for (const [name, { get, set, usual }] of options) {
      const value = name in values ? values[name] : usual;
      if (value !== get()) set(value);
    }
  };

  /** Calls fn when the encoders are known, and again whenever there are others. */
  bw.whenKnown = function (fn) {
    bw.on("encoders", fn);
    if (bw.state.bank) fn();
  };

  bw.isChosen = function (sentence, token) {
    return bw.state.chosen.sentence === sentence && bw.state.chosen.token === token;
  };

  /** Places of tokens with a vector in the rows' order: [[sentence, token], ...]. */
  bw.rowPlaces = function (sentences, present) {
    return present.flatMap((s) => sentences[s].map((_, t) => [s, t]));
  };

  /** A part that asks the server for what it shows. It does so when it is on the screen and one of
   *  the topics has changed since the last time; request() is what it sends along, or null for
   *  nothing to ask now. Returns a function that asks at once, for the part's own controls. */
  bw.asks = function (element, trigger, topics, request) {
    let stale = true;
    let soon = null;
    const ask = () => {
      soon = null;
      if (!element.offsetParent || !bw.state.run) return;
      const sent = request();
      stale = false;
      if (sent === null) return;
      bw.emit("busy", true);
      trigger("ask", sent);
    };
    const askSoon = () => {
      if (soon === null) soon = requestAnimationFrame(ask);
    };
    for (const topic of topics) {
      bw.on(topic, () => {
        stale = true;
        askSoon();
      });
    }
    new IntersectionObserver((entries) => {
      if (stale && entries.some((entry) => entry.isIntersecting)) askSoon();
    }).observe(element);
    return askSoon;
  };

  // ---- from the server -------------------------------------------------------------------------

  const OWN_TOPICS = new Set(["serial", "bank", "run", "maps", "query", "near"]);

  function receive(message) {
    const state = bw.state;
    if (message.bank) {
      state.bank = message.bank;
      bw.fitWeights(state.bank.encoders);
    }
    if (message.run) {
      state.run = message.run;
      state.lasso = [];
      for (const encoder of Object.values(state.run.encoders)) {
        encoder.places = bw.rowPlaces(state.run.sentences, encoder.sentences);
      }
    }
    // Maps of a text that has been left in the meantime are not shown.
    const isMapped = message.maps && message.maps.text === state.run.text;
    if (isMapped) {
      state.maps = message.maps;
      for (const map of Object.values(state.maps.encoders)) {
        for (const points of [map, map.behind]) {
          if (!points) continue;
          points.coordinates = bw.unpack(points.coordinates);
          points.depth = points.depth && bw.unpack(points.depth);
        }
      }
    }
    const query = message.query;
    // A slow answer about a token that is no longer the chosen one is not shown.
    const current = query && (message.run || bw.isChosen(query.sentence, query.token));
    if (current) {
      state.query = query;
      if (message.run) state.chosen = { sentence: query.sentence, token: query.token };
    }
    const { near } = message;
    if (near) state.pools = near.pools;
    for (const [topic, value] of Object.entries(message)) {
      if (OWN_TOPICS.has(topic)) continue;
      state[topic] = value; // what a tab asked for
      bw.emit(topic, value);
    }
    // Nor does a slow answer under an earlier choice replace one under the present.
    const isNear = near && bw.isChosen(...near.place)
      && (message.run || bw.fits(near) || !bw.fits(state.near));
    if (isNear) state.near = near;
    if (message.bank) bw.emit("encoders");
    if (message.run) bw.emit("run");
    if (isMapped) bw.emit("maps");
    if (current) bw.emit("query");
    if (isNear) bw.emit("near");
    if (near) bw.emit("pools");
    bw.emit("busy", false);
  }

  // The part of the page that carries messages; it shows nothing.
  bw.part("feed", function (element, { props, watch }) {
    const read = () => props.value && receive(JSON.parse(props.value));
    watch("value", read);
    read();
  });

  // The theme is a class on the body; colors of plots are read anew when it changes.
  let dark = null;
  new MutationObserver(() => {
    const now = document.body.classList.contains("dark");
    if (dark !== null && dark !== now) bw.emit("theme");
    dark = now;
  }).observe(document.documentElement, { attributes: true, subtree: true, attributeFilter: ["class"] });
})(window.bothways);
