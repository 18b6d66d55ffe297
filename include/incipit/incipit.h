// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_INCIPIT_H_
#define INCIPIT_INCIPIT_H_

// Everything. Prefer the header that you need.
#include "incipit/cache_reports.h"
#include "incipit/capacity.h"
#include "incipit/chat.h"
#include "incipit/compressor.h"
#include "incipit/conversation.h"
#include "incipit/engine.h"
#include "incipit/error.h"
#include "incipit/inspect.h"
#include "incipit/log.h"
#include "incipit/message.h"
#include "incipit/metrics.h"
#include "incipit/openai.h"
#include "incipit/prefix_cache.h"
#include "incipit/sampling.h"
#include "incipit/self_consistency.h"
#include "incipit/store.h"
#include "incipit/version.h"

#endif  // INCIPIT_INCIPIT_H_
