// The password, and access tokens for scripts and apps.

import { type FormEvent, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { CreatedTokenResponse, TokenResponse } from "../../core/api-types.ts";
import { useApp } from "../context.ts";
import { askText } from "../dialogs.ts";
import { formatTime } from "../format.ts";
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
      {props.settings?.password_set && <Tokens />}
    </>
  );
}

function Password({ settings, reload }: SettingsProps) {
  const { api } = useApp();
  const [result, setResult] = useState<string | null>(null);
  const isSet = settings?.password_set ?? false;
  const change = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const fields = new FormData(form);
    try {
      await api.post("/api/password", { new: fields.get("new"), ...(isSet ? { current: fields.get("current") } : {}) });
      form.reset();
      setResult("Password saved. Other browsers must log in again.");
      await reload();
    } catch (error) {
      setResult(errorMessage(error));
    }
  };
  const logOut = async () => {
    await api.post("/api/logout").catch(() => undefined);
    location.assign("/login");
  };
  return (
    <>
      <p className={text.quiet}>
        {isSet
          ? "A password is set. Log in with it, or with a token."
          : "No password set. Only your user account on this computer has access."}
      </p>
      <form className={forms.inline} aria-label="Password" onSubmit={(event) => void change(event)}>
        {isSet && (
          <label>
            Current password
            <input type="password" name="current" autoComplete="current-password" required />
          </label>
        )}
        <label>
          New password
          <input type="password" name="new" autoComplete="new-password" minLength={8} required />
        </label>
        <Button type="submit">{isSet ? "Change password" : "Set password"}</Button>
        {isSet && <Button onClick={() => void logOut()}>Log out</Button>}
      </form>
      {result && <p role="status">{result}</p>}
    </>
  );
}

function Tokens() {
  const { api } = useApp();
  const [tokens, reload] = useItems<TokenResponse>("/api/tokens");
  const [created, setCreated] = useState<string | null>(null);
  const create = async () => {
    const name = (await askText("Create token", "Name", ""))?.trim();
    if (!name) return;
    const { token } = await api.post<CreatedTokenResponse>("/api/tokens", { name });
    setCreated(token);
    await reload();
  };
  return (
    <>
      <p className={text.quiet}>Tokens let scripts and apps use the API without your password.</p>
      {created && (
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
      )}
      <ItemList label="Tokens">
        {tokens.map(({ id, name, created_at }) => (
          <Item key={id} title={name} facts={[`Created ${formatTime(created_at)}`]}>
            <ItemAction
              name="Revoke"
              of={name}
              onClick={() => void api.call("DELETE", `/api/tokens/${id}`).then(reload)}
            />
          </Item>
        ))}
      </ItemList>
      <Button onClick={() => void create()}>Create token</Button>
    </>
  );
}
