/* SPDX-License-Identifier: MIT
 * The functions behind the rows of the tables, declared from the tables. */
#ifndef RUNG_TEXT_JINJA_ROWS_H
#define RUNG_TEXT_JINJA_ROWS_H

#include "text/jinja/call.h"

#define FILTER(name, parameters, required, function) rung_jfunction_fn rung_jfilter_##function;
#include "text/jinja/filters.def"
#undef FILTER
#define TEST(name, parameters, required, function) rung_jfunction_fn rung_jtest_##function;
#include "text/jinja/tests.def"
#undef TEST
#define GLOBAL(name, parameters, required) rung_jfunction_fn rung_jglobal_##name;
#include "text/jinja/globals.def"
#undef GLOBAL
#define METHOD(kinds, name, parameters, required, function) rung_jfunction_fn rung_jmethod_##function;
#define MUTATES(kinds, name)
#include "text/jinja/methods.def"
#undef METHOD
#undef MUTATES

#endif
