// Notifications: on this device or off, what about, and the devices that have them on.

import { useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { PushDeviceResponse, PushTestResponse } from "../../core/api-types.ts";
import { useApp } from "../context.ts";
import { formatTime } from "../format.ts";
import { ownDevice } from "../notifications/own-device.ts";
import { isSupported, turnOff, turnOn } from "../notifications/push-subscription.ts";
import { Button } from "../widgets/buttons.tsx";
import forms from "../widgets/forms.module.css";
import { Item, ItemAction, ItemList, type ItemStatus } from "../widgets/ItemList.tsx";
import text from "../widgets/text.module.css";
import styles from "./Notifications.module.css";
import { useItems } from "./use-settings.ts";

const PATH = "/api/push/subscriptions";
const EVENTS = [
  ["done", "Answer ready"],
  ["failed", "Answer failed or interrupted"],
  ["approval", "Needs approval or an answer"],
] as const;

interface Result {
  readonly text: string;
  readonly ok: boolean;
}

export function Notifications() {
  const { api, env } = useApp();
  const [devices, reload] = useItems<PushDeviceResponse>(PATH);
  const [own, setOwn] = useState(() => ownDevice(env));
  const [result, setResult] = useState<Result | null>(null);
  const [busy, setBusy] = useState(false);
  const device = devices.find(({ id }) => id === own);

  const attempt = async (work: () => Promise<Result | null>) => {
    setBusy(true);
    setResult(null);
    try {
      setResult(await work());
    } catch (error) {
      setResult({ text: errorMessage(error), ok: false });
    }
    setOwn(ownDevice(env));
    await reload();
    setBusy(false);
  };
  const start = () =>
    attempt(async () => {
      const permission = await Notification.requestPermission();
      if (permission !== "granted") return { text: "Notifications are blocked in the browser’s settings.", ok: false };
      await turnOn(env, api);
      return { text: "Notifications are on.", ok: true };
    });
  const stop = () =>
    attempt(async () => {
      await turnOff(env, api);
      return { text: "Notifications are off on this device.", ok: true };
    });
  const test = ({ id }: PushDeviceResponse) =>
    attempt(async () => {
      const { sent, reason } = await api.post<PushTestResponse>(`${PATH}/${id}/test`);
      return { text: sent ? "Test notification sent." : (reason ?? "The notification was not sent."), ok: sent };
    });
  const remove = ({ id }: PushDeviceResponse) =>
    attempt(async () => {
      await (id === own ? turnOff(env, api) : api.call("DELETE", `${PATH}/${id}`));
      return null;
    });

  return (
    <>
      <p className={text.quiet}>
        Get notified when an answer is ready or needs you, even if Holdfast is closed. Nothing is shown while you look
        at the chat.
      </p>
      {isSupported() ? (
        <p className={text.row}>
          <span>Notifications on this device</span>
          <Button small disabled={busy} onClick={() => void (device ? stop() : start())}>
            {device ? "Turn off notifications" : "Turn on notifications"}
          </Button>
        </p>
      ) : (
        <Unsupported />
      )}
      {device && <Choices device={device} onChange={(fields) => attempt(() => change(device, fields))} />}
      {result && (
        <p className={result.ok ? text.quiet : text.error} role="status">
          {result.text}
        </p>
      )}
      {devices.length > 0 && (
        <ItemList label="Devices with notifications">
          {[...devices]
            .sort((a, b) => Number(b.id === own) - Number(a.id === own))
            .map((each) => (
              <Item
                key={each.id}
                status={statusOf(each)}
                title={each.id === own ? `${each.device} (this device)` : each.device}
                facts={[
                  each.service,
                  each.succeeded_at && `Last sent ${formatTime(each.succeeded_at)}`,
                  each.failure && each.failed_at && `Failed ${formatTime(each.failed_at)}`,
                ]}
                details={each.failure && <p className={text.error}>{each.failure}</p>}
              >
                <ItemAction name="Test" of={each.device} disabled={busy} onClick={() => void test(each)} />
                <ItemAction name="Remove" of={each.device} disabled={busy} onClick={() => void remove(each)} />
              </Item>
            ))}
        </ItemList>
      )}
    </>
  );

  async function change({ id }: PushDeviceResponse, fields: Partial<PushDeviceResponse>): Promise<null> {
    await api.call("PATCH", `${PATH}/${id}`, fields);
    return null;
  }
}

function statusOf({ failure, succeeded_at }: PushDeviceResponse): ItemStatus {
  if (failure !== null) return { text: "Failed", kind: "bad" };
  return succeeded_at === null ? { text: "Not used yet", kind: "neutral" } : { text: "Works", kind: "good" };
}

interface ChoicesProps {
  device: PushDeviceResponse;
  onChange: (fields: Partial<PushDeviceResponse>) => Promise<void>;
}

function Choices({ device, onChange }: ChoicesProps) {
  const [chosen, setChosen] = useState<Partial<PushDeviceResponse>>({}); // until the server has it
  const choose = async (fields: Partial<PushDeviceResponse>) => {
    setChosen((before) => ({ ...before, ...fields }));
    await onChange(fields);
    setChosen({});
  };
  const checkbox = (name: (typeof EVENTS)[number][0] | "show_title", label: string) => (
    <label key={name} className={forms.checkbox}>
      <input
        type="checkbox"
        checked={chosen[name] ?? device[name]}
        onChange={({ target }) => void choose({ [name]: target.checked })}
      />
      {label}
    </label>
  );
  return (
    <>
      <fieldset className={styles.choices}>
        <legend>Notify me about</legend>
        {EVENTS.map(([name, label]) => checkbox(name, label))}
      </fieldset>
      {checkbox("show_title", "Show the chat title in notifications")}
    </>
  );
}

function Unsupported() {
  if (!isSecureContext)
    return <p>Notifications need HTTPS. Open Holdfast at an https address, or on its own computer.</p>;
  return <p>This browser has no notifications here. On iPhone and iPad, add Holdfast to the Home Screen first.</p>;
}
