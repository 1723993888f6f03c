"""Three servers of aiosmtpd on loopback, for tests/notify/real_server.rs: each keeps every mail as a file.

    smtp_server.py FOLDER    with tls.pem and tls.key in it; writes FOLDER/ports once they listen
"""
import asyncio
import pathlib
import ssl
import sys

from aiosmtpd.smtp import SMTP

folder = pathlib.Path(sys.argv[1])


class Keeper:
    def __init__(self, name):
        self.name, self.count = name, 0

    async def handle_DATA(self, server, session, envelope):
        if any(to.startswith("nobody@") for to in envelope.rcpt_tos):
            return "550 5.1.1 no such mailbox"
        self.count += 1
        secured = "yes" if session.ssl else "no"
        if self.name == "tls":
            secured = "yes"
        head = f"secured {secured}\nfrom {envelope.mail_from}\nto {','.join(envelope.rcpt_tos)}\n\n"
        path = folder / f"{self.name}-{self.count}"
        path.write_bytes(head.encode() + envelope.content)
        return f"250 2.0.0 kept as {path.name}"


async def main():
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(folder / "tls.pem", folder / "tls.key")
    loop, ports = asyncio.get_running_loop(), []
    for name, options, wrap in [
        ("plain", {}, None),
        ("starttls", {"tls_context": tls, "require_starttls": True}, None),
        ("tls", {}, tls),
    ]:
        keeper = Keeper(name)
        server = await loop.create_server(
            lambda keeper=keeper, options=options: SMTP(keeper, **options), "127.0.0.1", 0, ssl=wrap
        )
        ports.append(f"{name} {server.sockets[0].getsockname()[1]}\n")
    (folder / "ports.new").write_text("".join(ports))
    (folder / "ports.new").rename(folder / "ports")
    await asyncio.Event().wait()


asyncio.run(main())
