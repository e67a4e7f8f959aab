/* SPDX-License-Identifier: Apache-2.0 */
/* No function: only the name of the library that is linked from this matters (tools.cmake). */
