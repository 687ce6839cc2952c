// Budgets: how much of each is used, and a dialog to add or edit one.

import { type FormEvent, type ReactNode, useCallback, useEffect, useId, useState } from "react";
import { errorMessage, isMissing } from "../../core/api.ts";
import type { BudgetRequest, BudgetResponse, BudgetsResponse } from "../../core/api-types.ts";
import { localTimeZone, usedShare } from "../../core/usage.ts";
import { useApp } from "../context.ts";
import { askConfirmation } from "../dialogs.ts";
import { formatCount, formatTime } from "../format.ts";
import { Alert } from "../widgets/Alert.tsx";
import { Button, FormButtons } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Dialog, dialogBodyClass } from "../widgets/Dialog.tsx";
import { Item, ItemAction, ItemList } from "../widgets/ItemList.tsx";
import { NumberField } from "../widgets/NumberField.tsx";
import { Segments } from "../widgets/Segments.tsx";
import text from "../widgets/text.module.css";
import styles from "./Usage.module.css";

const MAX_BUDGETS = 8;

const dollars = new Intl.NumberFormat(undefined, { style: "currency", currency: "USD" });

function amount({ unit }: Pick<BudgetRequest, "unit">, value: number): string {
  return unit === "tokens" ? `${formatCount(Math.round(value))} tokens` : dollars.format(value);
}

const nameOf = (budget: BudgetRequest) => `${amount(budget, budget.limit)} a ${budget.period}`;

export function Budgets() {
  const { api, env } = useApp();
  const [budgets, setBudgets] = useState<BudgetsResponse | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [adding, setAdding] = useState(false);
  const [edited, setEdited] = useState<BudgetResponse | null>(null);
  const load = useCallback(async (request: Promise<BudgetsResponse>) => {
    try {
      setBudgets(await request);
      setProblem(null);
    } catch (error) {
      setProblem(errorMessage(error));
    }
  }, []);
  useEffect(() => {
    void load(api.budgets());
    const stopWrites = api.onWrite((path) => path === "/api/prices" && void load(api.budgets()));
    const stopShown = env.onVisibilityChange(() => env.isHidden() || void load(api.budgets()));
    return () => {
      stopWrites();
      stopShown();
    };
  }, [api, env, load]);
  const add = async (budget: BudgetRequest) => {
    if (budgets?.items.length === 0) {
      await api.setBudgetTimeZone(localTimeZone()).catch(() => null); // the server may know no other zone than UTC
    }
    return api.addBudget(budget);
  };
  const drop = async ({ id }: BudgetResponse) => {
    await api.deleteBudget(id).catch((error: unknown) => {
      if (!isMissing(error)) throw error; // another tab has removed it
    });
    return api.budgets();
  };
  /** The changed one is added first: messages are limited at every moment. */
  const replace = async (budget: BudgetResponse, changed: BudgetRequest) => {
    await api.addBudget(changed);
    return drop(budget);
  };
  const remove = async (budget: BudgetResponse) => {
    const detail = "Messages will no longer be limited by it.";
    const { confirmed } = await askConfirmation(`Remove the budget of ${nameOf(budget)}?`, detail, "Remove");
    if (confirmed) await load(drop(budget));
  };
  const items = budgets?.items ?? [];
  return (
    <>
      <h3 className={text.subsectionTitle}>Budgets</h3>
      <p className={text.quiet}>
        {items.length
          ? `Days and months begin at midnight in ${budgets?.time_zone_in_use}. Answers in progress are never stopped.`
          : "Get a warning, or block new messages, when usage reaches a daily or monthly limit."}
      </p>
      {problem && <Alert text={problem} />}
      <ItemList label="Budgets">
        {items.map((budget) => (
          <Item key={budget.id} title={nameOf(budget)} facts={factsOf(budget)} details={<UsedBar budget={budget} />}>
            <ItemAction name="Edit" of={nameOf(budget)} onClick={() => setEdited(budget)} />
            <ItemAction name="Remove" of={nameOf(budget)} onClick={() => void remove(budget)} />
          </Item>
        ))}
      </ItemList>
      {items.length < MAX_BUDGETS && <Button onClick={() => setAdding(true)}>Add budget</Button>}
      {adding && (
        <BudgetDialog
          onSave={(budget) => {
            setAdding(false);
            void load(add(budget));
          }}
          onClose={() => setAdding(false)}
        />
      )}
      {edited && (
        <BudgetDialog
          budget={edited}
          onSave={(budget) => {
            setEdited(null);
            void load(replace(edited, budget));
          }}
          onClose={() => setEdited(null)}
        />
      )}
    </>
  );
}

function UsedBar({ budget }: { budget: BudgetResponse }) {
  const share = usedShare(budget);
  return (
    <>
      <meter className={text.visuallyHidden} aria-label={`Used of ${nameOf(budget)}`} value={share}>
        {Math.round(share * 100)}%
      </meter>
      <svg
        className={classNames(styles.bar, budget.is_reached && styles.reached)}
        viewBox="0 0 1 1"
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        <rect width={share} height={1} />
      </svg>
    </>
  );
}

function factsOf(budget: BudgetResponse): (string | false)[] {
  const { action, is_reached, resets_at, unpriced_tokens, unit, used } = budget;
  const effect = action === "refuse" ? "Blocks new messages when used up" : "Warns when used up";
  return [
    `${amount(budget, used)} used`,
    is_reached ? (action === "refuse" ? "New messages are blocked" : "Used up") : effect,
    `Resets ${formatTime(resets_at)}`,
    unit === "usd" && unpriced_tokens > 0 && `${formatCount(unpriced_tokens)} tokens without a price are not counted`,
  ];
}

const UNITS: readonly (readonly [BudgetRequest["unit"], string])[] = [
  ["usd", "US dollars"],
  ["tokens", "Tokens"],
];
const PERIODS: readonly (readonly [BudgetRequest["period"], string])[] = [
  ["day", "Per day"],
  ["month", "Per month"],
];
const ACTIONS: readonly (readonly [BudgetRequest["action"], string])[] = [
  ["warn", "Warn"],
  ["refuse", "Block new messages"],
];

/** Shows the name that assistive technology reads too. */
function Labeled({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className={styles.field}>
      <span className={styles.label} aria-hidden="true">
        {name}
      </span>
      {children}
    </div>
  );
}

interface BudgetDialogProps {
  /** The one to edit; without one, a new one is made. */
  budget?: BudgetRequest;
  onSave: (budget: BudgetRequest) => void;
  onClose: () => void;
}

function BudgetDialog({ budget, onSave, onClose }: BudgetDialogProps) {
  const [limit, setLimit] = useState<number | null>(budget?.limit ?? null);
  const [unit, setUnit] = useState<BudgetRequest["unit"]>(budget?.unit ?? "usd");
  const [period, setPeriod] = useState<BudgetRequest["period"]>(budget?.period ?? "month");
  const [action, setAction] = useState<BudgetRequest["action"]>(budget?.action ?? "warn");
  const [missing, setMissing] = useState(false);
  const id = useId();
  const name = budget ? "Edit budget" : "Add budget";
  const save = (event: FormEvent) => {
    event.preventDefault();
    if (limit === null) return setMissing(true);
    onSave({ limit, unit, period, action });
  };
  const isMoney = unit === "usd";
  return (
    <Dialog name={name} onClose={onClose}>
      <form className={dialogBodyClass} onSubmit={save}>
        <h2>{name}</h2>
        <Labeled name="Unit">
          <Segments label="Unit" options={UNITS} value={unit} onChange={setUnit} />
        </Labeled>
        <div className={styles.field}>
          <label htmlFor={id}>{isMoney ? "Amount in US dollars" : "Input and output tokens together"}</label>
          <NumberField
            id={id}
            hintId={undefined}
            min={0}
            max={1_000_000_000_000}
            step={isMoney ? 1 : 100_000}
            start={0}
            whole={!isMoney}
            placeholder={isMoney ? "20" : "5000000"}
            value={limit}
            onChange={setLimit}
          />
        </div>
        <Labeled name="Period">
          <Segments label="Period" options={PERIODS} value={period} onChange={setPeriod} />
        </Labeled>
        <Labeled name="When it is used up">
          <Segments label="When it is used up" options={ACTIONS} value={action} onChange={setAction} />
        </Labeled>
        {missing && (
          <p className={text.error} role="alert">
            Enter an amount.
          </p>
        )}
        <FormButtons>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary">
            {budget ? "Save" : "Add"}
          </Button>
        </FormButtons>
      </form>
    </Dialog>
  );
}
