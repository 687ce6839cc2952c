// Which models a person is offered, and what they are called.

import type { Model } from "./types.ts";

const DEMO = "demo";

/** The scripted demo is no language model: it is offered only where there is nothing else, or where it is in use. */
export function offeredModels(models: readonly Model[], used: string | null = null): readonly Model[] {
  const others = models.filter(({ provider, id }) => provider !== DEMO || id === used);
  return others.some(({ available, provider }) => available && provider !== DEMO) ? others : models;
}

/** The name of the model that runs inside Holdfast says where it is. */
const LOCAL = "local";

/** The provider of a model, unless the model's name says it. */
export const providerNote = ({ provider }: Model): string | undefined => (provider === LOCAL ? undefined : provider);

/** The name of a model with its provider, for lists of one line each. */
export function modelLabel(model: Model): string {
  const provider = providerNote(model);
  return provider ? `${model.name} (${provider})` : model.name;
}

const providerOf = (id: string) => id.split("/", 1)[0];

/** Whether there is anybody to ask: a provider may have models that it does not list. */
export const isConnected = (models: readonly Model[], id: string | undefined): boolean =>
  id !== undefined && models.some((model) => providerOf(model.id) === providerOf(id));

export function isUsable(models: readonly Model[], id: string): boolean {
  return models.find((model) => model.id === id)?.available ?? isConnected(models, id);
}

/** The name of a model; its id if it is not listed, such as one of an agent program. */
export function modelName(models: readonly Model[], id: string): string {
  return models.find((model) => model.id === id)?.name ?? id;
}
