// Shows the prompts and confirmations that `dialogs.ts` requests.

import { useState } from "react";
import { useStore } from "../context.ts";
import { type DialogRequest, dialogRequest } from "../dialogs.ts";
import { Button, FormButtons } from "./buttons.tsx";
import { Dialog, dialogBodyClass } from "./Dialog.tsx";
import forms from "./forms.module.css";

export default function PromptDialog() {
  const request = useStore(dialogRequest);
  return request && <OpenPrompt key={request.title} request={request} />;
}

function OpenPrompt({ request }: { request: DialogRequest }) {
  const { title, detail, field, action, secret, ownPassword, option, onAnswer } = request;
  const [value, setValue] = useState(request.value ?? "");
  const close = (answer: string | null) => {
    dialogRequest.set(null);
    onAnswer(answer);
  };
  return (
    <Dialog name={title} onClose={() => close(null)}>
      <form
        method="dialog"
        className={dialogBodyClass}
        onSubmit={(event) => {
          event.preventDefault();
          close(value);
        }}
      >
        <h2>{title}</h2>
        {detail && <p>{detail}</p>}
        {field && (
          <label>
            {field}
            <input
              type={secret || ownPassword ? "password" : "text"}
              autoComplete={ownPassword ? "current-password" : "off"}
              value={value}
              onFocus={(event) => event.target.select()}
              onChange={(event) => setValue(event.target.value)}
            />
          </label>
        )}
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
          <Button onClick={() => close(null)}>Cancel</Button>
          <Button type="submit" variant={field ? "primary" : "danger"}>
            {action}
          </Button>
        </FormButtons>
      </form>
    </Dialog>
  );
}
