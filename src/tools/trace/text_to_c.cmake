# SPDX-License-Identifier: Apache-2.0
# cmake -DINPUT=page.html -DOUTPUT=page.inc -P text_to_c.cmake: a text as a string of C, a literal for each line.
file(READ ${INPUT} text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n\"" text "${text}")
file(WRITE ${OUTPUT} "\"${text}\"\n")
