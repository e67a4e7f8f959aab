# SPDX-License-Identifier: Apache-2.0
# complete.sh FILE WORD...: prints what the completion in FILE offers for the last word.
. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
"_$1"
echo "${COMPREPLY[*]}"
