"""Makes signatures.json by Python's own hmac: known answers that no code of ours had a hand in.

    python3 tests/webhook/make_signatures.py > tests/webhook/signatures.json
"""
import base64
import hashlib
import hmac
import json

BODIES = {
    "empty": b"",
    "object": b'{"status":"succeeded","outputs":[1,2.50]}',
    "with line ends": b'{\r\n  "a": "\xc3\xa9",\n\t"b": null }\n',
    "not UTF-8": bytes(range(256)),
    "one mebibyte": b"0123456789abcdef" * 65536,
}
FIRST = bytes(range(32))
SECOND = hashlib.sha256(b"the second secret").digest()


def mac(key, text):
    return hmac.new(key, text, hashlib.sha256).digest()


def vectors():
    for number, (name, body) in enumerate(BODIES.items()):
        stamp, nonce, event = 1_700_000_000 + number, hashlib.md5(name.encode()).hexdigest(), f"evt_{number}"
        euterpe = f"{stamp}.{nonce}.".encode() + body
        standard = f"{event}.{stamp}.".encode() + body
        yield {
            "name": name,
            # Long bodies are told by how often a part is repeated.
            "body": base64.b64encode(body[:16] if len(body) > 1000 else body).decode(),
            "repeated": 65536 if len(body) > 1000 else 1,
            "timestamp": stamp,
            "nonce": nonce,
            "event_id": event,
            "euterpe": [mac(key, euterpe).hex() for key in (FIRST, SECOND)],
            "standard": ["v1," + base64.b64encode(mac(key, standard)).decode() for key in (FIRST, SECOND)],
        }


print(json.dumps({
    "keys": [base64.b64encode(key).decode() for key in (FIRST, SECOND)],
    # The example of the Standard Webhooks specification's own libraries.
    "published": {
        "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "event_id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "timestamp": 1614265330,
        "body": '{"test": 2432232314}',
        "signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    },
    "vectors": list(vectors()),
}, indent=1))
