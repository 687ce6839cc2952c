// The password, the devices that are logged in, and access tokens for scripts and apps.

import { type FormEvent, useEffect, useState } from "react";
import { errorMessage, problemOf } from "../../core/api.ts";
import type { CreatedTokenResponse, LoginResponse, TokenResponse } from "../../core/api-types.ts";
import { useApp } from "../context.ts";
import { askConfirmation, askText } from "../dialogs.ts";
import { formatTime } from "../format.ts";
import { withRoot } from "../root-path.ts";
import { Alert } from "../widgets/Alert.tsx";
import { Button, CopyButton } from "../widgets/buttons.tsx";
import forms from "../widgets/forms.module.css";
import { Item, ItemAction, ItemList } from "../widgets/ItemList.tsx";
import { NoticeBox } from "../widgets/NoticeBox.tsx";
import text from "../widgets/text.module.css";
import { type SettingsProps, useItems } from "./use-settings.ts";

export function Access(props: SettingsProps) {
  return (
    <>
      <Password {...props} />
      {props.settings?.password_set && <Devices />}
      {props.settings?.password_set && <Tokens />}
    </>
  );
}

function Password({ settings, reload }: SettingsProps) {
  const { api } = useApp();
  const [result, setResult] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [visible, setVisible] = useState(false);
  const type = visible ? "text" : "password";
  const isSet = settings?.password_set ?? false;
  const change = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const fields = new FormData(form);
    setResult(null);
    const matches = fields.get("new") === fields.get("repeat");
    setProblem(matches ? null : "The passwords don’t match. Type them again.");
    if (!matches) return;
    try {
      await api.post("/api/password", { new: fields.get("new"), ...(isSet ? { current: fields.get("current") } : {}) });
      form.reset();
      const changed = "Password changed. Other devices were logged out, and all tokens were revoked.";
      setResult(isSet ? changed : "Password set. Use it to log in from now on.");
      await reload();
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  const logOut = async () => {
    announceLogout();
    await api.post("/api/logout").catch(() => undefined);
    location.assign(withRoot("/login"));
  };
  return (
    <>
      <p className={text.quiet}>
        {isSet ? (
          <>
            Password protection is on. To remove the password, run <code>holdfast password --remove</code> on the
            server.
          </>
        ) : (
          "No password set. Only your user account on this computer has access."
        )}
      </p>
      <form className={forms.inline} aria-label="Password" onSubmit={(event) => void change(event)}>
        {isSet && (
          <label>
            Current password
            <input type={type} name="current" autoComplete="current-password" required />
          </label>
        )}
        <label>
          New password
          <input
            type={type}
            name="new"
            autoComplete="new-password"
            minLength={8}
            required
            placeholder="At least 8 characters"
          />
        </label>
        <label>
          Repeat new password
          <input type={type} name="repeat" autoComplete="new-password" required />
        </label>
        <Button type="submit">{isSet ? "Change password" : "Set password"}</Button>
        {isSet && <Button onClick={() => void logOut()}>Log out</Button>}
        <label className={forms.checkbox}>
          <input type="checkbox" checked={visible} onChange={(event) => setVisible(event.target.checked)} />
          Show password
        </label>
      </form>
      {problem && <Alert text={problem} />}
      {result && <p role="status">{result}</p>}
    </>
  );
}

/** Tells the login page that the user asked for it: another request may lead there first, as to an expired login. */
function announceLogout(): void {
  try {
    sessionStorage.setItem("holdfast.left", "1");
  } catch {
    // Storage is disabled: the login page says that the login has ended.
  }
}

const DEVICES_REFRESH_MS = 10_000;

function Devices() {
  const { api } = useApp();
  const [logins, reload] = useItems<LoginResponse>("/api/logins");
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    const timer = setInterval(() => void reload(), DEVICES_REFRESH_MS); // other devices log in and out
    return () => clearInterval(timer);
  }, [reload]);
  const logOut = async (id: string) => {
    try {
      await api.call("DELETE", `/api/logins/${id}`);
      setProblem(null);
    } catch (error) {
      setProblem(errorMessage(error));
    }
    await reload();
  };
  const logOutEverywhere = async () => {
    const detail = "You will have to log in again on every device, this one included. Tokens keep working.";
    const { confirmed } = await askConfirmation("Log out everywhere?", detail, "Log out everywhere");
    if (!confirmed) return;
    try {
      announceLogout();
      await api.call("DELETE", "/api/logins");
      location.assign(withRoot("/login"));
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  return (
    <>
      <h3 className={text.subsectionTitle}>Devices</h3>
      {problem && <Alert text={problem} />}
      <ItemList label="Devices">
        {logins.map(({ id, device, address, used_at, current }) => (
          <Item key={id} title={device} facts={[current ? "This device" : `Last used ${formatTime(used_at)}`, address]}>
            {!current && <ItemAction name="Log out" of={`${device}, ${address}`} onClick={() => void logOut(id)} />}
          </Item>
        ))}
      </ItemList>
      {logins.length > 0 && <Button onClick={() => void logOutEverywhere()}>Log out everywhere</Button>}
    </>
  );
}

const scrollTo = (box: HTMLElement | null) => box?.scrollIntoView({ block: "nearest" });

function Tokens() {
  const { api } = useApp();
  const [tokens, reload] = useItems<TokenResponse>("/api/tokens");
  const [created, setCreated] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const create = async () => {
    const post = async (name: string) => {
      setCreated((await api.post<CreatedTokenResponse>("/api/tokens", { name: name.trim() })).token);
      setProblem(null);
      await reload();
    };
    await askText("Create token", "Name", "", { action: "Create", attempt: (name) => problemOf(post(name)) });
  };
  const revoke = async (id: string, name: string) => {
    const detail = "Apps and scripts that use it will stop working.";
    if (!(await askConfirmation(`Revoke “${name}”?`, detail, "Revoke")).confirmed) return;
    try {
      await api.call("DELETE", `/api/tokens/${id}`);
      setProblem(null);
    } catch (error) {
      setProblem(errorMessage(error));
    }
    await reload();
  };
  return (
    <>
      <h3 className={text.subsectionTitle}>Tokens</h3>
      <p className={text.quiet}>Tokens let scripts and apps use the API without your password.</p>
      {problem && <Alert text={problem} />}
      {created && (
        <div ref={scrollTo}>
          <NoticeBox
            kind="warning"
            text={
              <>
                Copy this token now. You won’t see it again: <code>{created}</code>
              </>
            }
          >
            <CopyButton text={() => created} name="Copy token" />
          </NoticeBox>
        </div>
      )}
      <ItemList label="Tokens">
        {tokens.map(({ id, name, created_at }) => (
          <Item key={id} title={name} facts={[`Created ${formatTime(created_at)}`]}>
            <ItemAction name="Revoke" of={name} onClick={() => void revoke(id, name)} />
          </Item>
        ))}
      </ItemList>
      <Button onClick={() => void create()}>Create token</Button>
    </>
  );
}
