// What the charts and the network share when they draw on a canvas.

const FAMILY = "system-ui, 'DejaVu Sans', sans-serif";

/** Make a canvas as fine as the screen, and return its context and size in CSS pixels. */
export function sharp(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

/** The page's font in a size of CSS pixels. */
export const font = (size) => `${size}px ${FAMILY}`;

/** Add a circle to the path. */
export function circle(context, x, y, radius) {
  context.arc(x, y, radius, 0, 2 * Math.PI);
}

/** A function that calls `draw` before the next frame, once however often it is called. */
export function beforeNextFrame(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}
