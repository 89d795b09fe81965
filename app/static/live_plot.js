// One Plotly node that lives as long as the page: drawn again by Plotly.react, never replaced, so
// that zoom survives. While a slider is dragged its points are moved by their SVG transform, which
// costs a tenth of a restyle; Plotly gets the data when the drag ends.

(function (bw) {
  "use strict";

  const CONFIG = {
    displaylogo: false,
    doubleClick: "reset",
    modeBarButtons: [["zoom2d", "pan2d", "lasso2d", "resetScale2d"]],
    responsive: false, // the row watches its size itself
  };

  bw.LivePlot = class {
    /** events: {click(customdata), hover(customdata or null), lasso([customdata]), zoom(ranges)} */
    constructor(node, events) {
      this.node = node;
      this.events = events;
      this.ready = false;
      this.moves = []; // nodes of the points by trace, found when first needed
    }

    draw(traces, layout) {
      this.moves = [];
      window.Plotly.react(this.node, traces, layout, CONFIG);
      if (!this.ready) this.#listen();
      this.ready = true;
    }

    /** Puts the points of a trace elsewhere without telling Plotly; x and y in data units. */
    move(trace, x, y) {
      const { xaxis, yaxis } = this.node._fullLayout;
      const points = this.#points(trace);
      for (let i = 0; i < points.length; i++) {
        points[i].setAttribute("transform", `translate(${xaxis.d2p(x[i])},${yaxis.d2p(y[i])})`);
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

    zoom(ranges) {
      window.Plotly.relayout(this.node, { "xaxis.range": ranges.x, "yaxis.range": ranges.y });
    }

    ranges() {
      const { xaxis, yaxis } = this.node._fullLayout;
      return { x: [...xaxis.range], y: [...yaxis.range] };
    }

    #points(trace) {
      if (!this.moves[trace]) {
        const group = this.node.calcdata[trace][0].node3;
        this.moves[trace] = group ? group.node().querySelectorAll("path.point") : [];
      }
      return this.moves[trace];
    }

    #listen() {
      const { node, events } = this;
      node.on("plotly_click", (event) => events.click(event.points[0].customdata));
      node.on("plotly_hover", (event) => events.hover(event.points[0].customdata));
      node.on("plotly_unhover", () => events.hover(null));
      node.on("plotly_selected", (event) => {
        if (event && event.points) events.lasso(event.points.map((point) => point.customdata));
      });
      node.on("plotly_deselect", () => events.lasso([]));
      node.on("plotly_relayout", (change) => {
        // A visitor's zoom names the ends of a range one by one; our own zoom() does not, and must
        // not be answered, or two maps would answer each other for ever.
        if ("xaxis.range[0]" in change) events.zoom();
      });
    }
  };
})(window.bothways);
