#!/usr/bin/env python3
"""Holds what was really said against the schema of the protocol.

    validate.py SCHEMA LINES

Each line is {"part": …, "value": …}; one with "wrong" must not fit. Runs where the MCP client is installed: that brings the
validator along.
"""

import json
import sys

import jsonschema

schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
validators = {}
faults = 0
for line in open(sys.argv[2]):
    said = json.loads(line)
    part, value = said["part"], said["value"]
    if part not in schema["$defs"]:
        sys.exit(f"the schema has no {part}")
    if part not in validators:
        whole = {"$schema": schema["$schema"], "$ref": f"#/$defs/{part}", "$defs": schema["$defs"]}
        validators[part] = jsonschema.Draft202012Validator(whole)
    errors = list(validators[part].iter_errors(value))
    if bool(errors) != ("wrong" in said):
        faults += 1
        why = jsonschema.exceptions.best_match(errors).message if errors else "it fits, and must not"
        print(f"{part}: {why}: {json.dumps(value)[:600]}")
print("all is well" if faults == 0 else f"{faults} do not fit")
