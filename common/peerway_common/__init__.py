"""Code that several products of Peerway use: the command line, files, units and texts. It imports no
product.
"""
