// Example sentences behind a map: thousands of small dots on one canvas, where an SVG node each would
// be too many.

(function (bw) {
  "use strict";

  const SIZE = 1.6;

  /** Draws points {coordinates, n} by a panel's factors into its canvas. */
  bw.drawBehind = function (canvas, plot, points, factors) {
    canvas.hidden = !points;
    if (!points) return;
    const [width, height] = plot.size();
    const ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio; // clears it
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.fillStyle = bw.color("dot");
    const x = new Float64Array(points.n);
    const y = new Float64Array(points.n);
    bw.mixCoordinates(points.coordinates, factors, x, y);
    for (let i = 0; i < points.n; i++) {
      const [px, py] = plot.toPixels(x[i], y[i]);
      context.fillRect(px - SIZE / 2, py - SIZE / 2, SIZE, SIZE);
    }
  };
})(window.bothways);
