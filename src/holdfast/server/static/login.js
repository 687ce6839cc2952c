const root = location.pathname.slice(0, -"/login".length); // the path below which this server is published
const form = document.getElementById("login");
const problem = document.getElementById("problem");
const button = form.querySelector("button");

const status = document.getElementById("status");
if (leftByChoice()) {
  status.textContent = "You’re logged out.";
} else if (new URLSearchParams(location.search).has("logged_out")) {
  status.textContent = "You were logged out. Log in to continue where you were.";
}

/** Whether the user pressed Log out. */
function leftByChoice() {
  try {
    const left = sessionStorage.getItem("holdfast.left") !== null;
    sessionStorage.removeItem("holdfast.left");
    return left;
  } catch {
    return false; // storage is disabled
  }
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  problem.textContent = "";
  status.textContent = "";
  button.disabled = true;
  const slow = setTimeout(() => {
    status.textContent = "Still checking. Several wrong passwords in a row slow this down.";
  }, 2000);
  try {
    const response = await submitPassword(form.password.value);
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
  status.textContent = "";
  button.disabled = false;
  form.password.select();
});

/** While others at the same address guess, the server may have no place for this attempt: it is repeated for ten
 * minutes, because the user cannot do anything about it. */
async function submitPassword(password) {
  const endsAt = Date.now() + 600_000;
  for (;;) {
    const response = await fetch(`${root}/api/login`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ password }),
    });
    if (response.status !== 429 || Date.now() > endsAt) return response;
    status.textContent = "Too many passwords are being tried from your network. Waiting to check yours…";
    const seconds = Number(response.headers.get("Retry-After")) || 15;
    await new Promise((resolve) => setTimeout(resolve, Math.min(seconds, 60) * 1000));
  }
}

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
