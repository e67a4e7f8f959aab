#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds out which snippets ptxas accepts. Reads snippets without verdicts from the standard input (README.md describes the form) and writes
them with verdicts. Needed only when snippets change: the tests read the checked-in result.

    acceptance_generate | judge_by_ptxas.py [--sample=N] [path of ptxas] > snippets.txt

--sample: keeps each snippet that ptxas accepts once, in the first section in which it does, and one in N of all others.

Many snippets form one module, one line each. Lines for which ptxas reports errors are rejected and removed, until it accepts the rest."""
import os
import re
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH = 250
ARCHITECTURES = [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121]


def architecture(target):
    """Returns the oldest real architecture of ptxas that runs code for the target."""
    name = target.split(",")[0].strip()
    if name[-1] in "af":
        return name
    return "sm_%d" % min(a for a in ARCHITECTURES if a >= int(name[3:]))


def module(head, snippets, prelude):
    version, target = head
    lines = [".version %s .target %s%s .global .align 16 .b8 gl[64]; .const .align 16 .b8 co[64];" % (
        version, target, " .address_size 64" if float(version) >= 2.3 else "")]
    for number, text in snippets:
        if text[:2] in ("M ", "A "):
            lines.append(text[2:].replace("@", "n%d" % number))
        else:
            # Until PTX ISA 1.3 parameters are declared in the body.
            head_of_kernel = ".entry k%d (.param .u64 out) {" if float(version) >= 1.4 else ".entry k%d { .param .u64 out;"
            lines.append((head_of_kernel + " %s %s }") % (number, prelude, text))
    return "\n".join(lines) + "\n"


def complaints(ptxas, head, snippets, prelude):
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(module(head, snippets, prelude))
        file.flush()
        done = subprocess.run([ptxas, "-arch", architecture(head[1]), file.name, "-o", "/dev/null"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    found = {}
    for line, kind, words in re.findall(r"line (\d+); (error|fatal)\s*:\s*(.*)", done.stdout):
        found.setdefault(int(line), words)
    return done.returncode, found, done.stdout


def is_about(words, text):
    """Whether a message that names an instruction names that of the snippet."""
    named = re.search(r"instruction '([a-z0-9_]+)", words)
    return not named or re.search(r"\b%s\b" % named.group(1), text) is not None


VERSION = re.compile(r"requires PTX ISA|requires \.target|not supported on \.target|Not a name of any known instruction")


def verdict(reasons, number):
    """+ taken, - refused, v refused because the version or the target of the text lacks it."""
    return "+" if number not in reasons else "v" if VERSION.search(reasons[number]) else "-"


def judge(ptxas, head, snippets, prelude):
    """Returns {number: reason} for the rejected snippets."""
    refused = {}
    for snippet in snippets if len(snippets) > 1 else []:
        if snippet[1].startswith("A "):
            refused.update(judge(ptxas, head, [snippet], prelude))
    left = [s for s in snippets if len(snippets) == 1 or not s[1].startswith("A ")]
    while left:
        status, found, output = complaints(ptxas, head, left, prelude)
        if status == 0:
            break
        hit = {}
        for line, words in found.items():
            if 2 <= line < 2 + len(left) and (len(left) == 1 or is_about(words, left[line - 2][1])):
                hit[left[line - 2][0]] = words
            elif 2 <= line < 2 + len(left): # ptxas also reports lines of its own library
                alone = judge(ptxas, head, [left[line - 2]], prelude)
                hit.update(alone)
        if not hit:
            if len(left) == 1:
                refused[left[0][0]] = output.strip().splitlines()[0] if output.strip() else "status %d" % status
                break
            half = len(left) // 2
            refused.update(judge(ptxas, head, left[:half], prelude))
            refused.update(judge(ptxas, head, left[half:], prelude))
            break
        refused.update(hit)
        left = [s for s in left if s[0] not in hit]
    return refused


def main():
    arguments = sys.argv[1:]
    one_in = int(arguments.pop(0)[len("--sample="):]) if arguments and arguments[0].startswith("--sample=") else 1
    ptxas = arguments[0] if arguments else "ptxas"
    taken = set()
    prelude = open(os.path.join(HERE, "prelude.txt")).read().replace("\n", " ")
    why = os.environ.get("WHY")
    head, groups = None, []
    for line in sys.stdin:
        line = line.rstrip("\n")
        if line.startswith("= "):
            version, target = line[2:].split(None, 1)
            groups.append(((version, target), []))
        elif line and not line.startswith("#"):
            groups[-1][1].append(line)
    for head, texts in groups:
        print("= %s %s" % head)
        numbered = list(enumerate(texts))
        for first in range(0, len(numbered), BATCH):
            part = numbered[first:first + BATCH]
            refused = judge(ptxas, head, part, prelude)
            for number, text in part:
                is_new = number not in refused and text not in taken
                if not is_new and zlib.crc32(("%s %s" % (head, text)).encode()) % one_in:
                    continue
                taken.add(text)
                print("%s %s%s" % (verdict(refused, number), text, "   // " + refused[number] if why and number in refused else ""))
            sys.stdout.flush()


main()
