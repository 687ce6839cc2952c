const root = location.pathname.slice(0, -"/login".length); // the path below which this server is published
const form = document.getElementById("login");
const problem = document.getElementById("problem");
const button = form.querySelector("button");

if (new URLSearchParams(location.search).has("logged_out")) {
  problem.textContent = "You were logged out. Log in to continue where you were.";
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  problem.textContent = "";
  button.disabled = true;
  const slow = setTimeout(() => {
    problem.textContent = "Still checking. Several wrong passwords in a row slow this down.";
  }, 2000);
  try {
    const response = await fetch(`${root}/api/login`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ password: form.password.value }),
    });
    if (response.ok) {
      location.assign(destination());
      return;
    }
    const body = await response.json().catch(() => ({}));
    problem.textContent = body.detail || "Login failed. Try again.";
  } catch {
    problem.textContent = "The server is unreachable. Check that it is running.";
  }
  clearTimeout(slow);
  button.disabled = false;
  form.password.select();
});

/** The page of this server that led here, or the start page. */
function destination() {
  try {
    const next = new URL(root + (new URLSearchParams(location.search).get("next") || "/"), location.origin);
    next.hash ||= location.hash;
    if (next.origin === location.origin && next.pathname !== location.pathname) return next.href;
  } catch {
    // Not an address.
  }
  return `${root}/`;
}
