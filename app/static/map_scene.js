// One map in three dimensions in place of a row's flat ones: of a layer, or of the mix. A browser has
// few WebGL contexts, so a row has one, and it lives as long as the page; Plotly keeps its camera.

(function (bw) {
  "use strict";

  const SCENE_SYMBOLS = { "triangle-up": "diamond-open", "triangle-down": "square-open",
    star: "circle-open", hexagon: "circle-open" }; // shapes that 3-D lacks

  const SIZE = 2.2; // of the box: it fills the panel's height

  /** view: {events, title(layer), traces(panel), axes(), placesBehind(panel), layers()}; panel is {layer}, the
   *  layer that is drawn, null for the last map. */
  bw.MapScene = class {
    constructor(view, events) {
      this.view = view;
      this.panel = { layer: 1 };
      this.node = bw.element("div", { class: "plot" });
      this.title = bw.element("span", { class: "title scene-title" });
      this.element = bw.element("div", { class: "panel scene" }, this.title, this.node);
      this.plot = new bw.LivePlot(this.node, events, true);
    }

    /** A button a layer, made anew only where there are others than before. */
    #show() {
      const { title, layers } = this.view;
      const choices = [...layers(), null];
      const buttons = this.title.children;
      if (buttons.length !== choices.length) this.title.replaceChildren(...choices.map((layer) => this.#button(layer)));
      choices.forEach((layer, i) => {
        buttons[i].textContent = title(layer);
        buttons[i].setAttribute("aria-pressed", String(layer === this.panel.layer));
      });
    }

    #button(layer) {
      return bw.element("button", { type: "button", class: "choice", onclick: () => {
        this.panel.layer = layer;
        this.draw();
      } });
    }

    draw() {
      if (!this.view.layers().includes(this.panel.layer)) this.panel.layer = null;
      this.#show();
      const [left, right, bottom, top, back, front] = this.view.frame();
      const axis = (range) => ({ range, showticklabels: false, title: { text: "" }, showspikes: false,
        showbackground: false, gridcolor: bw.color("line"), zeroline: false });
      const sizes = [right - left, top - bottom, front - back];
      const most = Math.max(...sizes);
      const { xaxis, yaxis, ...layout } = this.view.layout(); // there are none in a scene
      this.plot.draw(this.#traces(), {
        ...layout, width: this.node.clientWidth, height: this.node.clientHeight,
        dragmode: "turntable",
        scene: { camera: this.#camera(), xaxis: axis([left, right]), yaxis: axis([bottom, top]), zaxis: axis([back, front]),
          aspectmode: "manual",
          aspectratio: { x: (SIZE * sizes[0]) / most, y: (SIZE * sizes[1]) / most, z: (SIZE * sizes[2]) / most } },
      });
    }

    /** Where the visitor looks from now: what was turned stays turned. Plotly tells its layout only
     *  some of the turns. */
    #camera() {
      const { scene } = this.node._fullLayout || {};
      return scene && scene._scene ? scene._scene.getCamera() : undefined;
    }

    #traces() {
      return this.view.traces(this.panel).map((trace) => ({
        ...trace, type: "scatter3d",
        marker: { ...trace.marker, size: [].concat(trace.marker.size).map((size) => 0.8 * size),
          symbol: [].concat(trace.marker.symbol).map((symbol) => SCENE_SYMBOLS[symbol] || symbol) },
      }));
    }

    /** The points are elsewhere: a frame of a drag or of a walk. */
    move() {
      if (!this.plot.ready) return;
      const traces = this.#traces();
      window.Plotly.restyle(this.node, { x: traces.map((t) => t.x), y: traces.map((t) => t.y),
        z: traces.map((t) => t.z) }, traces.map((_, i) => i));
    }
  };
})(window.bothways);
