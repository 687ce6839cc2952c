// An empty conversation. On a first run it says which models were found.

import { useApp, useStore } from "./context.ts";
import { Link } from "./router.tsx";

export function Welcome() {
  const { models, loaded } = useStore(useApp().catalogue);
  const ready = models.filter((model) => model.available);
  return (
    <section className="welcome" aria-label="Welcome">
      <img src="/static/icon.svg" alt="" width="56" height="56" />
      <h2>What shall we work on?</h2>
      <p className="quiet">Every word is stored before you see it. Close the tab, lose the network, pull the plug.</p>
      {loaded && models.length > 0 && (
        <p className="quiet">
          {ready.length === 0
            ? "No model can be asked just now. "
            : `${ready.length} ${ready.length === 1 ? "model is" : "models are"} ready: ${ready
                .slice(0, 3)
                .map((model) => model.name)
                .join(", ")}${ready.length > 3 ? " …" : "."} `}
          <Link href="/settings">Models</Link>
        </p>
      )}
    </section>
  );
}
