import type { ViewFactories, ViewFactory } from '../../src/delivery/thread/outlet-registry.ts';
import { ShelfView } from './shelf-view.ts';

const shelf: ViewFactory = (settings, context) => new ShelfView(settings, context);

export const SHELF_VIEWS: ViewFactories = { llhls: shelf, hlsv3: shelf, thumbnail: shelf };
