import type { ViewFactories, ViewFactory } from '../../src/delivery/feed/view.ts';
import { BlobView } from './blob-view.ts';

const blobs: ViewFactory = (settings, context) => new BlobView(settings, context);

export const BLOB_VIEWS: ViewFactories = { llhls: blobs, hlsv3: blobs, thumbnail: blobs };
