// One Plotly node that lives as long as the page: drawn again by Plotly.react, never replaced. While a slider is dragged its points are moved by their SVG transform, which
// costs a tenth of a restyle; Plotly gets the data when the drag ends.

(function (bw) {
  "use strict";

  const sceneButtons = () => ["resetCameraDefault3d", "tableRotation", "pan3d", "zoom3d"];

  const SAME_PLACE = 4; // pixels that a click may move
  const FRAMES = 50; // milliseconds

  /** Few buttons; flat maps have a reset of our own, since a row of maps is reset together. */
  const flatButtons = (events) => ["zoom2d", "pan2d", "lasso2d", {
    name: "reset", title: "Reset", icon: window.Plotly.Icons.home, click: () => events.reset(),
  }];

  /** Plotly's settings. */
  const config = (buttons) => ({
    displaylogo: false,
    doubleClick: false,
    responsive: false, // the row watches its size itself
    modeBarButtons: [buttons],
  });

  bw.LivePlot = class {
    /** events: {click(customdata), hover(customdata or null), lasso([customdata]), zoom(ranges),
     *  reset()}; isScene: whether it has three dimensions */
    constructor(node, events, isScene = false) {
      this.node = node;
      this.events = events;
      this.isScene = isScene;
      this.ready = false;
      this.moves = []; // nodes of the points by trace, found when first needed
    }

    draw(traces, layout) {
      this.moves = [];
      window.Plotly.react(this.node, traces, layout, config(this.isScene ? sceneButtons() : flatButtons(this.events)));
      if (!this.ready) this.#listen();
      this.ready = true;
    }

    /** Puts the points of a trace elsewhere without telling Plotly, perhaps in other colors; x and y in
     *  data units. */
    move(trace, x, y, colors) {
      const { xaxis, yaxis } = this.node._fullLayout;
      const points = this.#points(trace);
      for (let i = 0; i < points.length; i++) {
        points[i].setAttribute("transform", `translate(${xaxis.d2p(x[i])},${yaxis.d2p(y[i])})`);
        if (colors) points[i].style.fill = colors[i];
      }
    }

    /** Tells Plotly where the points of all traces are now. */
    settle(x, y) {
      this.moves = [];
      window.Plotly.restyle(this.node, { x, y }, x.map((_, i) => i));
    }

    /** Data units -> pixels inside the node. */
    toPixels(x, y) {
      const { xaxis, yaxis } = this.node._fullLayout;
      return [xaxis._offset + xaxis.d2p(x), yaxis._offset + yaxis.d2p(y)];
    }

    /** Width and height in pixels, without asking the browser to lay out the page. */
    size() {
      const { width, height } = this.node._fullLayout;
      return [width, height];
    }

    #points(trace) {
      if (!this.moves[trace]) {
        const group = this.node.calcdata[trace][0].node3;
        this.moves[trace] = group ? group.node().querySelectorAll("path.point") : [];
      }
      return this.moves[trace];
    }

    #listen() {
      if (this.isScene) return this.#listenToScene();
      const { node, events } = this;
      node.on("plotly_click", (event) => events.click(event.points[0].customdata));
      node.on("plotly_hover", (event) => events.hover(event.points[0].customdata));
      node.on("plotly_unhover", () => events.hover(null));
      node.on("plotly_selected", (event) => {
        if (event && event.points) events.lasso(event.points.map((point) => point.customdata));
      });
      node.on("plotly_deselect", () => events.lasso([]));
      node.on("plotly_doubleclick", () => events.reset());
      node.on("plotly_relayout", (change) => {
        if (!("xaxis.range[0]" in change)) return; // not a visitor's zoom
        const { xaxis, yaxis } = node._fullLayout;
        events.zoom({ x: [...xaxis.range], y: [...yaxis.range] });
      });
    }

    /** In a scene Plotly tells of a press on a dot with every frame until it ends, also while the scene
     *  is turned. A click is a press that ends where it began. */
    #listenToScene() {
      const { node, events } = this;
      let under = null; // the dot under the pointer
      let start = [0, 0];
      const point = (event) => {
        under = event ? event.points[0].customdata : null;
        events.hover(under);
      };
      node.on("plotly_click", point);
      node.on("plotly_hover", point);
      node.on("plotly_unhover", () => point(null));
      node.addEventListener("pointerdown", ({ clientX, clientY }) => { start = [clientX, clientY]; }, true);
      node.addEventListener("pointerup", ({ clientX, clientY }) => {
        if (Math.hypot(clientX - start[0], clientY - start[1]) >= SAME_PLACE) return;
        setTimeout(() => under && events.click(under), FRAMES); // Plotly finds the dot of a tap a frame later
      }, true);
    }
  };
})(window.bothways);
