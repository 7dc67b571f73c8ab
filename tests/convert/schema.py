# SPDX-License-Identifier: MIT
"""schema: JSON against a JSON schema (of draft 7 what speedscope's uses), strictly: a
key that the schema does not name is wrong too."""

TYPES = {"object": dict, "array": list, "string": str, "number": (int, float), "integer": int, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$ref", "definitions", "anyOf", "const", "enum", "type", "properties", "required", "items", "title", "description", "default"}


def is_of(value, name):
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def wrongs(value, schema, root=None, at="$"):
    """What is wrong, as lines; none: nothing is."""
    root = schema if root is None else root
    unknown = set(schema) - KNOWN
    if unknown:
        return [f"{at}: this checker does not know {sorted(unknown)}"]
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return wrongs(value, target, root, at)
    if "anyOf" in schema:
        tries = [wrongs(value, one, root, at) for one in schema["anyOf"]]
        return [] if any(not one for one in tries) else min(tries, key=len)
    found = []
    if "const" in schema and value != schema["const"]:
        found.append(f"{at}: {value!r} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: {value!r} is none of {schema['enum']}")
    if "type" in schema and not is_of(value, schema["type"]):
        return found + [f"{at}: {str(value)[:40]!r} is no {schema['type']}"]
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        found += [f"{at}: {key} is missing" for key in schema.get("required", ()) if key not in value]
        found += [f"{at}: {key} is not in the schema" for key in value if key not in properties]
        for key in set(value) & set(properties):
            found += wrongs(value[key], properties[key], root, f"{at}.{key}")
    if isinstance(value, list) and "items" in schema:
        for index, one in enumerate(value):
            found += wrongs(one, schema["items"], root, f"{at}[{index}]")
    return found
