// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_EXPORT_H_
#define INCIPIT_EXPORT_H_

/// Marks what the shared library exports; everything else is hidden.
#define INCIPIT_API __attribute__((visibility("default")))

#endif  // INCIPIT_EXPORT_H_
