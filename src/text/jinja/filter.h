/* SPDX-License-Identifier: MIT
 * What the files of filters share. */
#ifndef RUNG_TEXT_JINJA_FILTER_H
#define RUNG_TEXT_JINJA_FILTER_H

#include "text/jinja/rows.h"

#define ROW(name)                                                                                                   \
  rung_status rung_jfilter_##name(rung_jrun *run, rung_jvalue self, const rung_jcall *call, const rung_jvalue *arg, \
                                  rung_jvalue *out)
#define UNUSED (void)run, (void)self, (void)call, (void)arg

#endif
