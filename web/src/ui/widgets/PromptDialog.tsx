// Shows the prompts and confirmations that `dialogs.ts` requests.

import { useRef, useState } from "react";
import { useStore } from "../context.ts";
import { answerDialog, type DialogRequest, dialogRequests } from "../dialogs.ts";
import { Alert } from "./Alert.tsx";
import { Button, FormButtons } from "./buttons.tsx";
import { Dialog, dialogBodyClass } from "./Dialog.tsx";
import forms from "./forms.module.css";

export default function PromptDialog() {
  return useStore(dialogRequests).map((request) => <OpenPrompt key={request.title} request={request} />);
}

function OpenPrompt({ request }: { request: DialogRequest }) {
  const { title, detail, field, action, secret, ownPassword, optional, option, safe, attempt } = request;
  const [value, setValue] = useState(request.value ?? "");
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const missing = field !== undefined && !optional && !value.trim();
  const submit = async () => {
    if (busy || missing) return;
    setBusy(true);
    const failed = (await attempt?.(value)) ?? null;
    if (failed === null) return answerDialog(request, value);
    setProblem(failed);
    setBusy(false);
    input.current?.focus();
  };
  const close = () => answerDialog(request, null);
  return (
    <Dialog name={title} onClose={close}>
      <form
        method="dialog"
        className={dialogBodyClass}
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <h2>{title}</h2>
        {detail && <p>{detail}</p>}
        {field && (
          <label>
            {field}
            <input
              ref={input}
              type={secret || ownPassword ? "password" : "text"}
              autoComplete={ownPassword ? "current-password" : "off"}
              value={value}
              onFocus={(event) => event.target.select()}
              onChange={(event) => {
                setValue(event.target.value);
                setProblem(null);
              }}
            />
          </label>
        )}
        {problem && <Alert text={problem} />}
        {option && (
          <label className={forms.checkbox}>
            <input
              type="checkbox"
              checked={value !== ""}
              onChange={(event) => setValue(event.target.checked ? "checked" : "")}
            />
            {option}
          </label>
        )}
        <FormButtons>
          <Button onClick={close}>Cancel</Button>
          <Button type="submit" variant={field || safe ? "primary" : "danger"} disabled={busy || missing}>
            {action}
          </Button>
        </FormButtons>
      </form>
    </Dialog>
  );
}
