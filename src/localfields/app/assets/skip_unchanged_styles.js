// At every drawing Bokeh writes the style of all that it draws, mostly unchanged, and asks for computed
// styles in between, for which the browser goes through all of them: skip those that are unchanged.
const {get, set} = Object.getOwnPropertyDescriptor(Node.prototype, "textContent");
const steady = function(text) { if (get.call(this) !== text) set.call(this, text); };
Object.defineProperty(
  HTMLStyleElement.prototype, "textContent", {get, set: steady, configurable: true}
);
