"""HTTP/1.1 to an API server, on asyncio and httptools.

connection  one connection: a request at a time, the answer whole or in parts
pool        the connections to a server, and the transport made of them
tls         contexts for TLS of what an access says
identity    who we are: tokens, files with tokens, commands that give them
access      where a server is and how to show who we are
kubeconfig  access as kubeconfig files tell it
incluster   access as a pod finds it
commands    credentials from a command (ExecCredential)
"""
