"""Writes what each template of this folder gives, by jinja2 set up as transformers sets it up.

    python expected.py [FOLDER]

NAME.jinja gets NAME.json: a list of conversations, each with its text or with the error's type and message.
"""

import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(jinja2.ext.Extension):
    """`{% generation %}`: a scope without an effect on the text."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_text"), [], [], body).set_lineno(line)

    def _text(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def environment():
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda format: datetime.datetime.now().strftime(format)
    return made


def messages(*pairs):
    return [{"role": role, "content": content} for role, content in pairs]


CONVERSATIONS = [
    messages(("user", "Hello")),
    messages(("system", "You are brief."), ("user", "Hello")),
    messages(
        ("system", "You are brief."), ("user", "Hi"), ("assistant", "Hello!"), ("user", "Who are you?")
    ),
    messages(("user", "Hi"), ("assistant", "Hello!")),
    messages(
        ("user", "  leading\n\n trailing \t\n"),
        ("assistant", "\n<think>\nhm, <b>&amp;</b>\n</think>\n\n Ünïcödé 'quoted' \"text\" 日本語 🦀 "),
        ("user", "{{ x }} {% if %}"),
    ),
    messages(("user", "a"), ("user", "b")),
    messages(("assistant", "first"), ("user", "b")),
    messages(("tool", "42")),
    messages(("system", "only system")),
    messages(("developer", "be good"), ("user", "")),
]


def case(template, conversation, prompt):
    made = {"messages": conversation, "add_generation_prompt": prompt}
    try:
        made["text"] = template.render(
            messages=conversation,
            add_generation_prompt=prompt,
            tools=None,
            documents=None,
            bos_token="<s>",
            eos_token="</s>",
        )
    except Exception as error:
        made["error"] = f"{type(error).__name__}: {error}"
    return made


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    for path in sorted(folder.glob("*.jinja")):
        template = environment().from_string(path.read_text(encoding="utf-8"))
        cases = [case(template, said, prompt) for said in CONVERSATIONS for prompt in (True, False)]
        text = json.dumps(cases, ensure_ascii=False, indent=1)
        path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
