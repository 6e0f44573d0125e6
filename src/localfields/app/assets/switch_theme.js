// Loads the same address with the other theme.
const address = new URL(window.location.href);
const dark = address.searchParams.get("theme") === "dark";
address.searchParams.set("theme", dark ? "default" : "dark");
window.location.href = address.href;
